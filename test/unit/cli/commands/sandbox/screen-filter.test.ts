/** Output of a sandbox's terminal that reaches a watcher's terminal: sequences that draw, and none with another effect. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ScreenFilter } from "../../../../../daemon/cli/commands/sandbox/screen-filter.ts";

const passed = (text: string | Uint8Array, pieceBytes = Number.POSITIVE_INFINITY) => {
  const filter = new ScreenFilter();
  const bytes = Buffer.from(text);
  let shown = "";
  for (let at = 0; at < bytes.byteLength; at += pieceBytes) shown += filter.pass(bytes.subarray(at, at + pieceBytes));
  return shown;
};

test.each([
  ["text", "grüße, 你好 \u{1f600}\r\n\tx\b"],
  ["colours", "\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mrgb\x1b[4:3mcurly\x1b[m"],
  ["the cursor", "\x1b[H\x1b[10;20H\x1b[2A\x1b[5C\x1b[s\x1b[u\x1b7\x1b8\x1b[?25l\x1b[?25h"],
  ["erasing, scrolling, inserting", "\x1b[2J\x1b[K\x1b[1;20r\x1b[3S\x1b[2T\x1b[4P\x1b[2L\x1b[4h\x1b[4l\x1bM"],
  ["the alternate screen", "\x1b[?1049h\x1b[?1049l"],
  ["lines that are drawn", "\x1b(0lqk\x1b(B\x0ex\x0f"],
])("%s passes unchanged, in pieces of any size", (_, text) => {
  for (const size of [1, 2, 3, 1000]) expect(passed(text, size)).toBe(text);
});

describe("filters out", () => {
  test.each([
    ["the clipboard", "\x1b]52;c;aGk=\x07"],
    ["the clipboard, ended otherwise", "\x1b]52;c;aGk=\x1b\\"],
    ["a title", "\x1b]0;title\x07\x1b]2;title\x1b\\"],
    ["a link", "\x1b]8;;https://elsewhere.example\x1b\\"],
    ["a question for colours", "\x1b]11;?\x07"],
    ["a query for the cursor's position", "\x1b[6n\x1b[?6n\x1b[5n"],
    ["a query for the terminal's type", "\x1b[c\x1b[0c\x1b[>c\x1b[=c\x1bZ\x1b[>q\x05"],
    ["a query for the terminal's features", "\x1b[?1$p\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1b[?u\x1b[?4m\x1b[x"],
    ["its window", "\x1b[21t\x1b[18t\x1b[8;100;100t"],
    ["the mouse and the keyboard", "\x1b[?1000h\x1b[?1003;1006h\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[>4;1m\x1b=\x1b[2h"],
    ["the mouse followed", "\x1b[1;2;3;4;5T"],
    ["printing", "\x1b[5i\x1b[?4i"],
    ["clearing the scrollback", "\x1b[3J"],
    ["a sound", "\x07"],
    ["a count that keeps it busy", "\x1b[99999999b"],
    ["pictures and other programs", "\x1bPq#0;2;0;0;0\x1b\\\x1b_Gf=100;AAAA\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\"],
    ["the beginning of a sequence in one character", "\u009b"],
    ["a sequence that never ends", `\x1b[${"1;".repeat(5000)}m`],
  ])("%s", (_, text) => {
    for (const size of [1, 2, 1000]) expect(passed(`a${text}b`, size)).toBe("ab");
  });
});

test("only the drawing modes of a list of several pass", () => {
  expect(passed("\x1b[?1000;25;2004;1049h")).toBe("\x1b[?25h\x1b[?1049h");
});

test("a full reset clears the screen only", () => {
  expect(passed("a\x1bcb")).toBe("a\x1b[0m\x1b[r\x1b[H\x1b[2Jb");
});

test("invalid bytes are shown as such and have no effect on the terminal", () => {
  expect(passed(Uint8Array.of(0x9b, 0x36, 0x6e, 0xff))).toBe("\ufffd6n\ufffd");
});

test("of any input only text and known drawing sequences pass, in pieces of any size", () => {
  const part = fc.oneof(
    fc.constantFrom(
      "\x1b",
      "\x1b[",
      "\x1b]",
      "\x1bP",
      "\x07",
      "\x1b\\",
      "\x18",
      ";",
      "?",
      ">",
      "$",
      "!",
      " ",
      "\u009b",
      "\u009d",
    ),
    fc.constantFrom("c", "n", "t", "q", "p", "u", "m", "h", "l", "J", "T", "0", "6", "52", "1049"),
    fc.string({ unit: "binary" }),
  );
  const sequence = "\\[[\\d;:]*[@ABCDEFGHIJKLMPSTXZ`abdefgmrsu]|\\[4[hl]|\\[\\?(?:6|7|25|1049|2026)[hl]";
  const drawing = new RegExp(`\x1b(?:[78DEHM]|[()][0AB]|${sequence})`, "g");
  fc.assert(
    fc.property(fc.array(part, { maxLength: 40 }), fc.integer({ min: 1, max: 9 }), (parts, size) => {
      const whole = passed(parts.join(""));
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
      expect(whole.replace(drawing, "")).not.toMatch(/[\x00-\x07\x10-\x1f\x7f-\x9f]/);
      expect(passed(parts.join(""), size)).toBe(whole);
    }),
    { numRuns: 2000 },
  );
});
