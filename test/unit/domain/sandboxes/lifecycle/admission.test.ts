/** The gate before starts: few concurrently, organizations in turns, and a cancelled caller leaves it. */
import { expect, test } from "vitest";
import { Gate, reserveMib } from "../../../../../daemon/domain/sandboxes/lifecycle/admission.ts";

const patient = new AbortController().signal;

test("admits as many as it has slots, in order of arrival", async () => {
  const gate = new Gate(2);
  const log: string[] = [];
  const works = ["a", "b", "c", "d"].map((name) => {
    const done = Promise.withResolvers<void>();
    const through = gate.through(
      "org",
      async () => {
        log.push(name);
        await done.promise;
      },
      patient,
    );
    return { done, through };
  });
  expect(log).toEqual(["a", "b"]);
  works[1]?.done.resolve();
  await works[1]?.through;
  await Promise.resolve();
  expect(log).toEqual(["a", "b", "c"]);
  for (const { done } of works) done.resolve();
  await Promise.all(works.map(({ through }) => through));
  expect(log).toEqual(["a", "b", "c", "d"]);
});

test("an aborted waiter leaves immediately, and uses no turn", async () => {
  const gate = new Gate(1);
  const done = Promise.withResolvers<void>();
  const first = gate.through("org", () => done.promise, patient);
  const impatient = new AbortController();
  const given = gate.through("org", () => expect.unreachable(), impatient.signal);
  const last = gate.through("org", async () => "last", patient);
  impatient.abort(new Error("no more time"));
  await expect(given).rejects.toThrow("no more time");
  done.resolve();
  await first;
  expect(await last).toBe("last");
  // All places are free again.
  expect(await gate.through("org", async () => "next", patient)).toBe("next");
});

test("failed work releases its slot, and work aborted beforehand never starts", async () => {
  const gate = new Gate(1);
  await expect(gate.through("org", () => Promise.reject(new Error("broken")), patient)).rejects.toThrow("broken");
  await expect(
    gate.through("org", () => expect.unreachable(), AbortSignal.abort(new Error("too late"))),
  ).rejects.toThrow("too late");
  expect(await gate.through("org", async () => 1, patient)).toBe(1);
});

test("an organization with fifty starts delays another's first by one at most", async () => {
  const gate = new Gate(1);
  const log: string[] = [];
  const enter = (org: string) => gate.through(org, async () => void log.push(org), patient);
  const held = Promise.withResolvers<void>();
  const first = gate.through("a", () => held.promise, patient);
  const rest = [...Array.from({ length: 50 }, () => enter("a")), enter("b"), enter("b"), enter("c")];
  held.resolve();
  await Promise.all([first, ...rest]);
  expect(log.slice(0, 5).join("")).toBe("abcab");
  expect(log).toHaveLength(53);
});

test("an organization without waiters left has no turn", async () => {
  const gate = new Gate(1);
  const held = Promise.withResolvers<void>();
  const first = gate.through("a", () => held.promise, patient);
  const impatient = new AbortController();
  const given = gate.through("b", () => expect.unreachable(), impatient.signal);
  const last = gate.through("c", async () => "c", patient);
  impatient.abort(new Error("no more time"));
  await expect(given).rejects.toThrow("no more time");
  held.resolve();
  await first;
  expect(await last).toBe("c");
});

test("drained resolves when the last has left, or after its timeout", async () => {
  const gate = new Gate(2);
  const { signal } = new AbortController();
  await gate.whenEmpty(60_000);
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  const through = [first, second].map(({ promise }) => gate.through("a", () => promise, signal));
  let isEmpty = false;
  const empty = gate.whenEmpty(60_000).then(() => {
    isEmpty = true;
  });
  first.resolve();
  await through[0];
  await gate.whenEmpty(1);
  expect(isEmpty).toBe(false);
  second.resolve();
  await through[1];
  await empty;
  await gate.whenEmpty(60_000);
});

test.each([
  [8 * 1024, 512],
  [24 * 1024, 512],
  [512 * 1024, 10_486],
])("of %i MiB on a host with %i are never promised", (total, reserve) => {
  expect(reserveMib(total)).toBe(reserve);
});
