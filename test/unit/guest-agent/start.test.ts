/** Programs that a recipe starts: started once, polled until they are ready, and reported if they do not become ready. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Start, StartFailed } from "../../../guest-agent/start.ts";
import { until } from "../../harness/guests.ts";

let place: string;
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "roomd-start-"));
});
afterEach(() => rmSync(place, { recursive: true }));

const reaper = { spare: () => {} };

type Scripts = Partial<Record<"start" | "ready" | "before_save" | "restored", string>>;

function make({ seconds = 30, ...scripts }: Scripts & { seconds?: number }): Start {
  for (const [name, script] of Object.entries(scripts)) writeFileSync(join(place, name), script);
  writeFileSync(join(place, "ready-timeout"), `${seconds}\n`);
  return new Start(reaper, { place, log: join(place, "log") });
}

/** No exit status in it. */
const TIMED_OUT = /^start \D+$/;

const failureOf = async (start: Start): Promise<StartFailed> => {
  const failure = await start.bringUp().catch((error: unknown) => error);
  if (!(failure instanceof StartFailed)) throw new Error(`it did not fail: ${failure}`);
  return failure;
};

test("without a start program no command runs", async () => {
  const start = make({ ready: "touch $PWD/asked; exit 1" });
  expect(start.isWanted).toBe(false);
  await start.bringUp();
});

test("it is started once, for any number of calls", async () => {
  const start = make({ start: `echo begun >>${place}/begun` });
  await Promise.all([start.bringUp(), start.bringUp()]);
  await start.bringUp();
  expect(readFileSync(join(place, "begun"), "utf8")).toBe("begun\n");
});

test("it is up once ready exits with 0, and background processes are not awaited", async () => {
  const start = make({
    start: `(sleep 1.5; touch ${place}/is-up; sleep 60) & echo $! >${place}/pid`,
    ready: `echo asked >>${place}/asked; test -e ${place}/is-up`,
  });
  const startedAt = performance.now();
  await start.bringUp();
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  expect(readFileSync(join(place, "asked"), "utf8").split("\n").length).toBeGreaterThan(1);
  process.kill(Number(readFileSync(join(place, "pid"), "utf8")));
});

test("a failed start is reported by its code, with its last output", async () => {
  const failure = await failureOf(make({ start: "for n in $(seq 50); do echo line $n; done; echo no >&2; exit 7" }));
  expect(failure.message).toMatch(/^start .* 7$/);
  expect(failure.lastLines.at(-1)).toBe("no");
  expect(failure.lastLines).toHaveLength(20);
});

test("a start that does not exit is ended, and one that is never ready times out", async () => {
  const hangs = await failureOf(make({ start: "echo hangs; exec sleep 600", seconds: 1 }));
  expect([hangs.message, hangs.lastLines]).toEqual([expect.stringMatching(TIMED_OUT), ["hangs"]]);
  const never = await failureOf(make({ start: "true", ready: "echo not yet; exit 1", seconds: 1 }));
  expect(never.message).toMatch(/^ready .* 0 /);
  expect(never.lastLines.at(-1)).toBe("not yet");
});

test("a start at its time limit is ended with its children", async () => {
  const failure = await failureOf(make({ start: `sh -c 'echo $$ >${place}/pid; exec sleep 600'; true`, seconds: 1 }));
  expect(failure.message).toMatch(TIMED_OUT);
  const pid = readFileSync(join(place, "pid"), "utf8").trim();
  const isGone = () => !existsSync(`/proc/${pid}`) || / Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  await until("the child process has exited", isGone);
});

test("a failed start is retried at the next call", async () => {
  const start = make({ start: `echo tried >>${place}/tried; test -e ${place}/can` });
  expect((await failureOf(start)).message).toMatch(/^start .* 1$/);
  writeFileSync(join(place, "can"), "");
  await Promise.all([start.bringUp(), start.bringUp()]);
  await start.bringUp();
  expect(readFileSync(join(place, "tried"), "utf8")).toBe("tried\ntried\n");
});

test("reported lines are limited in length", async () => {
  const { lastLines } = await failureOf(make({ start: "head -c 100000 /dev/zero | tr '\\\\0' x; exit 1" }));
  expect(Math.max(...lastLines.map((line) => line.length))).toBe(200);
});

test("a running program is notified of its restore elsewhere, and one that is starting is not", async () => {
  const says = (word: string) => `echo ${word} >>${place}/said`;
  const scripts = { start: says("begun"), before_save: says("saved"), restored: says("restored") };
  const clone = make(scripts);
  await clone.bringUp();
  await clone.rest();
  await clone.goOn();
  expect(readFileSync(join(place, "said"), "utf8")).toBe("begun\nsaved\nrestored\n");
  rmSync(join(place, "said"));
  await make(scripts).goOn();
  expect(readFileSync(join(place, "said"), "utf8")).toBe("begun\n");
  const fails = make({ start: "true", before_save: "exit 3", restored: "echo no; exit 4" });
  await fails.bringUp();
  await expect(fails.rest()).rejects.toThrow(/^before_save .* 3$/);
  await expect(fails.goOn()).rejects.toThrow(/^restored .* 4$/);
});

const makeImage = (start: string[], ready?: string): Start => {
  make(ready === undefined ? {} : { ready });
  return new Start(reaper, { place, log: join(place, "log"), image: { start } });
};

test("an image's entry point keeps running, and is up once ready succeeds", async () => {
  const script = `echo $$ >${place}/pid; sleep 2.5; touch ${place}/is-up; exec sleep 60`;
  await makeImage(["sh", "-c", script], `test -e ${place}/is-up`).bringUp();
  process.kill(Number(readFileSync(join(place, "pid"), "utf8")));
  expect(existsSync(join(place, "is-up"))).toBe(true);
});

test("an image's entry point that is missing or exits immediately is reported, with its output", async () => {
  expect((await failureOf(makeImage(["no-such-program"]))).message).toContain("no-such-program: ");
  const failure = await failureOf(makeImage(["sh", "-c", "echo no port; exit 4"]));
  expect([failure.message, failure.lastLines]).toEqual([expect.stringMatching(/ sh .* 4$/), ["no port"]]);
  // A program that has finished its work may exit.
  await makeImage(["true"]).bringUp();
});
