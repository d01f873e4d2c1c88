/** Parts of JSON that are counted before it is parsed: everything outside of strings, in chunks of any size. */
import { expect, test } from "vitest";
import { JsonComplexity } from "../../../../daemon/edge/pipeline/json-complexity.ts";
import { DEFAULT_MAX_BODY_BYTES } from "../../../../shared/api/contract.ts";

/** The code with which it is refused, or null; it arrives in chunks of `pieceBytes`. */
function refusalOf(text: string, pieceBytes = 1000): string | null {
  const bytes = Buffer.from(text);
  const outline = new JsonComplexity();
  try {
    for (let at = 0; at < bytes.length; at += pieceBytes) outline.add(bytes.subarray(at, at + pieceBytes));
    return null;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

const MOST = DEFAULT_MAX_BODY_BYTES;
const STRINGS = ['"', "\\", "[", "{", "é", '\\"', "[]", "\n"].map((each) => each.repeat(MOST));

test("strings may have any length and content", () => {
  for (const text of STRINGS) expect(refusalOf(JSON.stringify({ text }), 65_536)).toBeNull();
  const escapes = JSON.stringify(['\\"[', "\\", '"\\\\"', "]"]);
  for (const pieceBytes of [1, 2, 3, 5]) expect(refusalOf(escapes.repeat(10), pieceBytes)).toBeNull();
});

test("content outside of strings is limited to the default body size", () => {
  expect(refusalOf(`[${"1".repeat(MOST - 2)}]`)).toBeNull();
  expect(refusalOf(`[${"1".repeat(MOST - 1)}]`)).toBe("body_too_large");
  expect(refusalOf(`[${"[],".repeat(MOST / 2)}0]`)).toBe("body_too_large");
  expect(refusalOf(`{${'"x":{},'.repeat(MOST / 2)}}`)).toBe("body_too_large");
  expect(refusalOf(`["\\\\",${"[],".repeat(MOST / 2)}0]`, 1)).toBe("body_too_large");
});

test("a long body has 20,000 values at most, a short one any number", () => {
  const values = (count: number, text = "1") =>
    `{"text":"${"x".repeat(64 * 1024)}","list":[${Array(count).fill(text)}]}`;
  for (const pieceBytes of [1, 1000, 1_000_000]) {
    expect(refusalOf(values(19_998), pieceBytes)).toBeNull();
    expect(refusalOf(values(20_000), pieceBytes)).toBe("body_too_large");
    expect(refusalOf(values(19_998, '",[{"'), pieceBytes)).toBeNull();
    expect(refusalOf(values(10_001, "[]"), pieceBytes)).toBe("body_too_large");
  }
  expect(refusalOf(`[${"[],".repeat(21_000)}0]`)).toBeNull();
});
