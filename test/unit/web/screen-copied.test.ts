/** Text copied at a screen, in a form that is safe for the user. */
import { expect, test } from "vitest";
import { copiedOf, MAX_COPIED } from "../../../daemon/web/agent/screen/copied.ts";

test("text is unchanged, with uniform line ends", () => {
  expect(copiedOf("gr\u00fc\u00df\u{1f600}\r\n\ttwo\n<b>")).toEqual({
    text: "gr\u00fc\u00df\u{1f600}\n\ttwo\n<b>",
    left: 0,
  });
  expect(copiedOf("")).toEqual({ text: "", left: 0 });
});

test("control and invisible characters are shown as signs", () => {
  expect(copiedOf("a\x1b[201~b\x00\x7f\rc").text).toBe("a\u241b[201~b\u2400\u2421\u240dc");
  expect(copiedOf("safe\u202etxt.exe").text).toBe("safe\u27e8U+202E\u27e9txt.exe");
});

test("text above the limit is cut, at a character", () => {
  expect(copiedOf("x".repeat(MAX_COPIED))).toMatchObject({ left: 0 });
  const { text, left } = copiedOf("x".repeat(MAX_COPIED + 5));
  expect([text.length, left]).toEqual([MAX_COPIED, 5]);
  const cut = copiedOf(`${"x".repeat(MAX_COPIED - 1)}\u{1f600}rest`);
  expect([cut.text, cut.left]).toEqual(["x".repeat(MAX_COPIED - 1), 6]);
});
