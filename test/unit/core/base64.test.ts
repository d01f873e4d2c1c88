/** Validation of base64 in steps, against the decoder of the whole text. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { isBase64 } from "../../../daemon/core/base64.ts";
import { wholly } from "../../../daemon/core/loop/index.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

function decodes(text: string): boolean {
  try {
    Uint8Array.fromBase64(text);
    return true;
  } catch {
    return false;
  }
}

const LINES = Buffer.alloc(400_001, "roomd").toString("base64").replaceAll(/.{76}/g, "$&\n");

test.each([
  ["nothing", ""],
  ["one line", Buffer.alloc(300_000, 7).toString("base64")],
  ["lines", LINES],
  ["lines without padding", LINES.replace(/=*$/, "")],
  ["a wrong character in the first part", `!${LINES}`],
  ["a wrong character in the last part", `${LINES.slice(0, -8)}!${LINES.slice(-8)}`],
  ["padding between two parts", `${Buffer.alloc(262_144, 7).toString("base64")}${LINES}`],
  ["a character that is too many", `${LINES}AAAAA`],
])("%s is accepted as the decoder does", (_, text) => {
  expect(wholly(isBase64(text))).toBe(decodes(text));
});

test("so is any text", () => {
  const character = fc.constantFrom(..."AZaz09+/=\n !");
  fc.assert(
    fc.property(fc.string({ unit: character, maxLength: 24 }), fc.boolean(), (end, isLong) => {
      const text = (isLong ? LINES.slice(0, 262_140) : "") + end;
      expect(wholly(isBase64(text))).toBe(decodes(text));
    }),
  );
});

test("the longest context takes short steps", async () => {
  const text = Buffer.alloc(10_485_762, 7).toString("base64");
  const work = async () => {
    for (const _ of isBase64(text)) await new Promise(setImmediate);
  };
  await work();
  const longest = await longestTurn(work);
  console.log(`longest turn: ${longest.toFixed(1)} ms`);
  expect(longest).toBeLessThan(boundOf(2));
});
