import { expect, test } from "vitest";
import { Session } from "../../../../daemon/domain/terminals/session.ts";
import type { AttachedTerminal } from "../../../../daemon/host/guest-link/terminal.ts";
import { MAX_TYPED_BYTES } from "../../../../shared/api/terminals.ts";
import { boundOf, longestTurn } from "../../../harness/event-loop/longest-turn.ts";
import { until } from "../../../harness/guests.ts";

/** A client at a terminal, with a guest that accepts input when the test allows it. */
function sit() {
  const taken: Uint8Array[] = [];
  let gate = Promise.withResolvers<void>();
  const closed: string[] = [];
  const sizes: number[] = [];
  const never = Promise.withResolvers<never>().promise;
  const terminal: AttachedTerminal = {
    offset: 0,
    rows: 24,
    cols: 80,
    output: { [Symbol.asyncIterator]: () => ({ next: () => never }) },
    write: async (bytes) => {
      await gate.promise;
      taken.push(bytes.slice());
    },
    resize: (rows) => sizes.push(rows),
    signal: () => {},
    ended: never,
    detach: () => {},
  };
  const session = new Session(terminal, 0, "org:org_1");
  session.start({ say: () => {}, send: async () => {}, close: (_, reason) => closed.push(reason) });
  const open = () => {
    gate.resolve();
    gate = Promise.withResolvers<void>();
    gate.resolve();
  };
  return {
    session,
    closed,
    sizes,
    open,
    get typed() {
      return Buffer.concat(taken);
    },
  };
}

test("frames of zero or one byte cost no more than their bytes", async () => {
  const { session, closed } = sit();
  const frames = 200_000;
  Bun.gc(true);
  const before = process.memoryUsage();
  for (let at = 0; at < frames; at++) {
    session.take(new Uint8Array(0));
    session.take(Uint8Array.of(at & 255));
  }
  Bun.gc(true);
  const after = process.memoryUsage();
  const grown = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
  expect(grown / frames).toBeLessThan(32);
  expect(closed).toEqual([]);
});

test("input arrives in order and whole", async () => {
  const seat = sit();
  const chunks = Array.from({ length: 3000 }, (_, at) => Buffer.from(`${at} `.repeat(at % 50)));
  for (const each of chunks.slice(0, 2000)) seat.session.take(each);
  seat.open();
  for (const each of chunks.slice(2000)) {
    await Promise.resolve();
    seat.session.take(each);
  }
  const whole = Buffer.concat(chunks);
  await until("all input is received", () => seat.typed.byteLength >= whole.byteLength);
  expect(seat.typed.equals(whole)).toBe(true);
});

test("input above the limit ends the session, and input already written does not count", async () => {
  const seat = sit();
  seat.session.take(new Uint8Array(MAX_TYPED_BYTES));
  seat.open();
  await until("all input is received", () => seat.typed.byteLength === MAX_TYPED_BYTES);
  await Promise.resolve();
  seat.session.take(new Uint8Array(MAX_TYPED_BYTES));
  expect(seat.closed).toEqual([]);
  const slow = sit();
  slow.session.take(new Uint8Array(MAX_TYPED_BYTES));
  slow.session.take(new Uint8Array(1));
  expect(slow.closed).toEqual([expect.stringMatching(/^input_overflow: /)]);
});

const resize = (rows: number) => JSON.stringify({ type: "resize", rows, cols: 80 });

test("a flood of resizes is applied in pieces of the event loop, and the last one counts", async () => {
  const { session, sizes, closed } = sit();
  session.hear(resize(1));
  expect(sizes).toEqual([1]);
  const longest = await longestTurn(async () => {
    for (let round = 0; round < 20; round++) {
      const last = 900 + round;
      for (let n = 0; n < 4_000; n++) session.hear(resize(1 + (n % 899)));
      session.hear(resize(last));
      await until("the last size is applied", () => sizes.at(-1) === last);
    }
  });
  expect(longest).toBeLessThan(boundOf(60));
  expect(sizes.length).toBeLessThan(500);
  expect(closed).toEqual([]);
});

test("a frame longer than any resize is rejected before it is queued", () => {
  const { session, closed } = sit();
  for (let n = 0; n < 100; n++) session.hear(resize(1).padEnd(1_024));
  expect(closed).toEqual([]);
  session.hear(resize(1).padEnd(1_025));
  expect(closed).toEqual([expect.stringMatching(/^bad_frame: /)]);
});

test("a client with more frames than can be processed is disconnected", async () => {
  const { session, closed } = sit();
  for (let n = 0; n < 20_000; n++) session.hear(resize(1 + (n % 999)));
  expect(closed).toEqual([expect.stringMatching(/^input_overflow: /)]);
});
