/** The wait for a server on a port of a guest. */
import { expect, test } from "vitest";
import type { SandboxAccess } from "../../../../daemon/domain/ports/deps.ts";
import { untilListening } from "../../../../daemon/domain/ports/listening.ts";

/** A sandbox with a guest that returns these sets of ports in turn; an error is a guest that does not answer. */
function access(answers: (number[] | Error)[]) {
  let callCount = 0;
  const withGuest = async () => {
    const answer = answers[Math.min(callCount++, answers.length - 1)];
    if (answer instanceof Error) throw answer;
    return new Set(answer);
  };
  return { sandboxes: { withGuest } as unknown as SandboxAccess, asked: () => callCount };
}
const NEVER = new AbortController().signal;

test("ends when a server listens, after any previous state", async () => {
  const { sandboxes, asked } = access([new Error("resuming"), [], [80], [80, 3000]]);
  await untilListening(sandboxes, "sbx", 3000, 60_000, NEVER);
  expect(asked()).toBe(4);
});

test("ends at its deadline, and when its caller disconnects", async () => {
  await untilListening(access([[]]).sandboxes, "sbx", 3000, 50, NEVER);
  await untilListening(access([[]]).sandboxes, "sbx", 3000, 60_000, AbortSignal.timeout(50));
  const none = access([[]]);
  await untilListening(none.sandboxes, "sbx", 3000, 60_000, AbortSignal.abort());
  expect(none.asked()).toBe(0);
});

test("many concurrent waits poll the guest hardly more often than a few", async () => {
  const pollCount = async (waits: number) => {
    let polls = 0;
    const withGuest = () => {
      polls++;
      return Promise.resolve(new Set());
    };
    const sandboxes = { withGuest } as unknown as SandboxAccess;
    const each = () => untilListening(sandboxes, "sbx", 3000, 1000, NEVER);
    await Promise.all(Array.from({ length: waits }, each));
    return polls - waits;
  };
  const [few, many] = [await pollCount(4), await pollCount(400)];
  expect(few).toBeGreaterThan(0);
  // Without a bound 100 times as many waits would send 100 times as many requests.
  expect(many).toBeLessThan(10 * few);
});
