/** Lines of bytes that arrive in chunks: the same as of all bytes together. */
import { expect, test } from "vitest";
import { Lines } from "../../../daemon/core/lines.ts";

function linesOf(...pieces: Uint8Array[]): string[] {
  const received: string[] = [];
  const lines = new Lines((line) => received.push(line));
  for (const piece of pieces) lines.push(piece);
  lines.end();
  return received;
}
const bytes = (text: string) => new TextEncoder().encode(text);

test("are complete for any chunks, including a cut within a character", () => {
  const text = bytes("one\r\ntwo €\n\n 50 %\r 100 %\rwithout an end");
  for (let at = 0; at <= text.length; at++) {
    const lines = linesOf(text.subarray(0, at), text.subarray(at));
    expect(lines).toEqual(["one", "two €", " 50 %", " 100 %", "without an end"]);
  }
});

test("a line without an end keeps only its last part", () => {
  const [line = ""] = linesOf(...Array.from({ length: 100 }, () => bytes("x".repeat(1000))), bytes("end\n"));
  expect([line.length, line.slice(-4)]).toEqual([4096, "xend"]);
});
