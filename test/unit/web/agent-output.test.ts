/** Conversion of the bytes of two streams into lines, and the lines that are evicted. */
import { describe, expect, test } from "vitest";
import { LONGEST_LINE, MAX_CHARACTERS, MAX_LINES, Output, type Stream } from "../../../daemon/web/agent/output.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const linesOf = (output: Output) => Array.from({ length: output.length }, (_, n) => output.at(n)?.text);

function outputOf(text: string, pieceBytes: number): Output {
  const output = new Output();
  const all = bytes(text);
  for (let at = 0; at < all.length; at += pieceBytes) output.push("stdout", all.subarray(at, at + pieceBytes));
  output.end();
  return output;
}

/** In pieces of each size, so that every sequence and character is cut everywhere. */
function expectLines(text: string, lines: string[]): void {
  for (let size = 1; size <= 7; size++) expect(linesOf(outputOf(text, size)), `pieces of ${size}`).toEqual(lines);
  expect(linesOf(outputOf(text, 10_000))).toEqual(lines);
}

describe("text", () => {
  test("lines, the last without an end", () => expectLines("one\n\ntwo\nrest", ["one", "", "two", "rest"]));
  test("characters of several bytes are joined across pieces", () =>
    expectLines("gr\u00fc\u00df\u{1f600}\n", ["gr\u00fc\u00df\u{1f600}"]));
  test("both kinds of line ends", () => expectLines("one\r\ntwo\r\n", ["one", "two"]));
  test("overwritten text is a line of its own", () => expectLines("10%\r20%\rdone\n", ["10%", "20%", "done"]));
  test("colours, titles and the clipboard are filtered out", () =>
    expectLines("\x1b[1;31mred\x1b[0m \x1b]0;title\x07a\x1b]52;c;aGk=\x1b\\b\x1b(Bc\n", ["red abc"]));
  test("an unterminated sequence hides no line after it", () =>
    expectLines("a\x1b]0;never\nb\x1b[12\nc\n", ["a", "b", "c"]));
  test("bytes that are not UTF-8", () => {
    const output = new Output();
    output.push("stdout", new Uint8Array([0x61, 0xff, 0x62, 0x0a, 0xe2, 0x82]));
    output.end();
    expect(linesOf(output)).toEqual(["a\ufffdb", "\ufffd"]);
  });
});

test("the two streams have separate lines, in the order of their starts", () => {
  const output = new Output();
  const push = (stream: Stream, text: string) => output.push(stream, bytes(text));
  push("stdout", "half");
  push("stderr", "oops\n");
  push("stdout", " whole\nnext\n");
  expect([0, 1, 2].map((n) => output.at(n))).toMatchObject([
    { stream: "stdout", text: "half whole" },
    { stream: "stderr", text: "oops" },
    { stream: "stdout", text: "next" },
  ]);
});

describe("limits", () => {
  test("the newest lines are kept, and the number of dropped ones is reported", () => {
    const output = new Output();
    const count = MAX_LINES + 12_345;
    for (let at = 0; at < count; at += 5000) {
      const some = Math.min(5000, count - at);
      output.push("stdout", bytes(Array.from({ length: some }, (_, n) => `${at + n}\n`).join("")));
    }
    expect([output.length, output.left.lines]).toEqual([MAX_LINES, 12_345]);
    expect([output.at(0)?.text, output.at(MAX_LINES - 1)?.text]).toEqual(["12345", String(count - 1)]);
  });

  test("a line without an end is cut into lines, within the limit of all lines", () => {
    const output = new Output();
    for (let n = 0; n < 80; n++) output.push("stdout", bytes("x".repeat(100_000)));
    expect(output.length).toBeLessThanOrEqual(MAX_CHARACTERS / LONGEST_LINE);
    expect(output.at(0)?.text.length).toBe(LONGEST_LINE);
    expect(output.left.lines).toBeGreaterThan(0);
  });
});
