/** Which messages belong together, whatever ids their senders chose. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { dumpOf, lineOf, threadsOf, whomOf } from "../../../daemon/web/room/messages/threads.ts";
import type { MessageRecord } from "../../../shared/api/fabric.ts";

const message = (seq: number, more: Partial<MessageRecord> = {}) =>
  ({
    message_id: `m${seq}`,
    seq,
    source: "a",
    destination: "b",
    destinations: null,
    topic: null,
    kind: "event",
    payload: null,
    payload_b64: null,
    size_bytes: 4,
    headers: {},
    reply_to: null,
    ack_required: false,
    created_at: "2026-01-31T12:00:00.000Z",
    expires_at: null,
    attempt: null,
    ...more,
  }) as MessageRecord;

test("replies are below their parent, and the thread with the newest message comes first", () => {
  const threads = threadsOf([
    message(1, { kind: "request" }),
    message(2, { kind: "request" }),
    message(3, { reply_to: "m1", kind: "response" }),
    message(4, { reply_to: "m3" }),
    message(5, { reply_to: "gone" }),
  ]);
  expect(threads.map(({ messages, isOpen }) => [messages.map(({ seq }) => seq), isOpen])).toEqual([
    [[5], false],
    [[1, 3, 4], false],
    [[2], true],
  ]);
});

test("each message is in one thread, even if ids form circles", () => {
  const any = fc
    .array(fc.option(fc.integer({ min: 0, max: 30 })), { maxLength: 30 })
    .map((replies) => replies.map((to, n) => message(n, { reply_to: to === null ? null : `m${to}` })));
  fc.assert(
    fc.property(any, (messages) => {
      const threads = threadsOf(messages);
      const seqs = threads.flatMap(({ messages: own }) => own.map(({ seq }) => seq)).sort((a, b) => a - b);
      expect(seqs).toEqual(messages.map(({ seq }) => seq));
    }),
  );
});

test("a message is shown as text, and its bytes as bytes", () => {
  expect(whomOf(message(1, { destination: "*" }))).toBe("everyone");
  expect(whomOf(message(1, { topic: "build.done" }))).toBe("topic build.done");
  expect(lineOf(message(1, { payload: { a: [1] } }))).toBe('{"a":[1]}');
  expect(lineOf(message(1, { payload_b64: "AAEC", size_bytes: 3 }))).toBe("3 bytes");
  expect(dumpOf(btoa("roomd\u0000\u00ff"))).toBe(`0000  72 6f 6f 6d 64 00 ff${" ".repeat(29)}roomd..`);
  expect(dumpOf(btoa("x".repeat(5000))).split("\n")).toHaveLength(64);
});
