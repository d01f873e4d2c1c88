/** Output that is kept: the first bytes, in memory of their own, whatever pieces they come in. */
import { expect, test } from "vitest";
import { Capture } from "../../../../../../daemon/domain/sandboxes/executions/run/capture.ts";

test("the first bytes are retained and all are counted", () => {
  const capture = new Capture(10_000);
  let all = "";
  for (let piece = 0; piece < 400; piece++) {
    const text = `piece ${piece} ${"x".repeat(piece % 60)}\n`;
    all += text;
    capture.take(Buffer.from(text));
  }
  expect(capture.totalBytes).toBe(all.length);
  expect(capture.bytes().toString()).toBe(all.slice(0, 10_000));
});

test("the memory of received chunks is not retained", () => {
  const limit = 1024;
  const capture = new Capture(limit);
  const chunk = Buffer.alloc(64 * 1024, "a");
  for (let at = 0; at < chunk.byteLength; at++) {
    capture.take(chunk.subarray(at, at));
    capture.take(chunk.subarray(at, at + 1));
  }
  expect(capture.totalBytes).toBe(chunk.byteLength);
  chunk.fill("b");
  expect(capture.bytes().toString()).toBe("a".repeat(limit));
  expect(capture.bytes().buffer.byteLength).toBeLessThanOrEqual(limit);
});

test("a limit of zero retains nothing", () => {
  const capture = new Capture(0);
  capture.take(Buffer.from("x"));
  expect([capture.totalBytes, capture.bytes().byteLength]).toEqual([1, 0]);
});
