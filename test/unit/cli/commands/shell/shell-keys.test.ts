/** Input of `roomd shell`: all of it is for the sandbox, except for a ~ at the beginning of a line. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { KeyReader } from "../../../../../daemon/cli/commands/shell/shell-keys.ts";

/** The bytes that the sandbox gets, and the command that ended the input. */
function typed(...pieces: string[]): [string, string | null] {
  const keys = new KeyReader();
  let text = "";
  for (const piece of pieces) {
    const { bytes, command } = keys.read(Buffer.from(piece));
    text += Buffer.from(bytes).toString();
    if (command) return [text, command];
  }
  return [text, null];
}

test.each<[string[], string, string | null]>([
  [["ls\r"], "ls\r", null],
  [["~."], "", "leave"],
  [["ls\r~."], "ls\r", "leave"],
  [["ls\r~", "."], "ls\r", "leave"],
  [["a~.b"], "a~.b", null],
  [["~~."], "~.", null],
  [["~~~."], "~~.", null],
  [["~?"], "", "help"],
  [["~a"], "~a", null],
  [["~\r~."], "~\r", "leave"],
  [["~"], "", null],
  [["cd ~/x\r"], "cd ~/x\r", null],
])("%j types %j and requests %j", (pieces, text, command) => {
  expect(typed(...pieces)).toEqual([text, command]);
});

test("bytes without a ~ pass unchanged, in pieces of any size", () => {
  const piece = fc.uint8Array({ maxLength: 50 }).map((bytes) => bytes.filter((byte) => byte !== 0x7e));
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const keys = new KeyReader();
      const sent = pieces.map((each) => keys.read(each).bytes);
      expect(Buffer.concat(sent).equals(Buffer.concat(pieces))).toBe(true);
    }),
  );
});
