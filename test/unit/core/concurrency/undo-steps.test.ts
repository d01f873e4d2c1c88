/** Sequences of steps with undo: it works, it unwinds, it unwinds twice, and each step may be done twice. */
import { describe, expect, test } from "vitest";
import { runSteps, type Step, StepError, undoSteps } from "../../../../daemon/core/concurrency/undo-steps.ts";

/** A shelf to which three steps add things; `failAt` and `stuckAt` name the step that fails. */
interface Shelf {
  things: Set<string>;
  log: string[];
  failAt?: string;
  stuckAt?: string;
}

const NAMES = ["first", "second", "third"];
const steps: Step<Shelf>[] = NAMES.map((name) => ({
  name,
  run: async (shelf) => {
    shelf.log.push(`run ${name}`);
    // Half done before it fails: undo has to cope with this state.
    shelf.things.add(`half ${name}`);
    if (shelf.failAt === name) throw new Error(`${name} is broken`, { cause: new Error("the wood is wet") });
    shelf.things.add(name);
  },
  undo: async (shelf) => {
    shelf.log.push(`undo ${name}`);
    if (shelf.stuckAt === name) throw new Error(`${name} is stuck`);
    shelf.things.delete(name);
    shelf.things.delete(`half ${name}`);
  },
}));

const shelf = (more: Partial<Shelf> = {}): Shelf => ({ things: new Set(), log: [], ...more });
const whole = new Set(NAMES.flatMap((name) => [name, `half ${name}`]));
const noneFailed = (step: string, error: unknown) => expect.unreachable(`${step}: ${error}`);

test("all steps run in order, each with its time", async () => {
  const on = shelf();
  const timings = await runSteps(steps, on, noneFailed);
  expect(on.things).toEqual(whole);
  expect(on.log).toEqual(["run first", "run second", "run third"]);
  expect(Object.keys(timings)).toEqual(["first_ms", "second_ms", "third_ms"]);
  for (const ms of Object.values(timings)) expect(ms).toBeGreaterThanOrEqual(0);
});

describe.each(NAMES)("when %s fails", (failAt) => {
  const before = NAMES.slice(0, NAMES.indexOf(failAt) + 1);

  test("it and the previous steps are undone in reverse, and nothing remains", async () => {
    const on = shelf({ failAt });
    const failed = runSteps(steps, on, noneFailed);
    await expect(failed).rejects.toBeInstanceOf(StepError);
    await expect(failed).rejects.toMatchObject({
      step: failAt,
      message: `${failAt}: ${failAt} is broken ← the wood is wet`,
      cause: { message: `${failAt} is broken` },
    });
    expect(on.things).toEqual(new Set());
    expect(on.log).toEqual([
      ...before.map((name) => `run ${name}`),
      ...before.toReversed().map((name) => `undo ${name}`),
    ]);
  });

  test("a second undo of everything changes nothing", async () => {
    const on = shelf({ failAt });
    await runSteps(steps, on, noneFailed).catch(() => {});
    await undoSteps(steps, on, noneFailed);
    await undoSteps(steps, on, noneFailed);
    expect(on.things).toEqual(new Set());
  });

  test("a failed undo is reported and stops no other undo", async () => {
    for (const stuckAt of before) {
      const on = shelf({ failAt, stuckAt });
      const stuck: string[] = [];
      await expect(runSteps(steps, on, (step, error) => stuck.push(`${step}: ${String(error)}`))).rejects.toMatchObject(
        {
          step: failAt,
        },
      );
      await expect(runSteps(steps, shelf({ failAt, stuckAt }), () => {})).rejects.toMatchObject({
        not_undone: [stuckAt],
      });
      expect(stuck).toEqual([`${stuckAt}: Error: ${stuckAt} is stuck`]);
      expect([...on.things].every((thing) => thing.endsWith(stuckAt))).toBe(true);
    }
  });
});

test("each step run twice gives the same as once", async () => {
  const on = shelf();
  const twice = steps.flatMap((step) => [step, step]);
  await runSteps(twice, on, noneFailed);
  expect(on.things).toEqual(whole);
  await undoSteps(twice, on, noneFailed);
  expect(on.things).toEqual(new Set());
});

test("an aborted sequence starts no further step and undoes the finished ones", async () => {
  const on = shelf();
  const giveUp = new AbortController();
  const last: Step<Shelf> = {
    name: "last",
    run: async () => giveUp.abort(new Error("no longer wanted")),
    undo: async () => {},
  };
  const [first, ...rest] = steps;
  if (!first) expect.unreachable();
  const given = runSteps([first, last, ...rest], on, noneFailed, giveUp.signal);
  await expect(given).rejects.toMatchObject({ step: "second", cause: { message: "no longer wanted" }, not_undone: [] });
  expect([[...on.things], on.log]).toEqual([[], ["run first", "undo second", "undo first"]]);
});

test("a failed undo is reported on each attempt until it succeeds", async () => {
  const on = shelf();
  await runSteps(steps, on, noneFailed);
  on.stuckAt = "second";
  expect(await undoSteps(steps, on, () => {})).toEqual(["second"]);
  expect([...on.things]).toEqual(["half second", "second"]);
  delete on.stuckAt;
  expect(await undoSteps(steps, on, noneFailed)).toEqual([]);
  expect(on.things).toEqual(new Set());
});

test("no steps are a valid sequence", async () => {
  expect(await runSteps([], shelf(), noneFailed)).toEqual({});
});

test("a step starts only when the previous one has ended", async () => {
  let running = 0;
  let most = 0;
  const slow: Step<null> = {
    name: "slow",
    run: async () => {
      most = Math.max(most, ++running);
      await new Promise((done) => setImmediate(done));
      running--;
    },
    undo: async () => {},
  };
  await runSteps([slow, slow, slow], null, noneFailed);
  expect(most).toBe(1);
});
