/** File contents decoded in pieces: the same bytes as when decoded whole, and the longest turn of the event loop during it. */
import { expect, test } from "vitest";
import { type Content, decodeContent, PART_CHARACTERS } from "../../../../daemon/core/call/content.ts";
import { loopTime, Pieces } from "../../../../daemon/core/loop/index.ts";
import { boundOf, longestTurn } from "../../../harness/event-loop/longest-turn.ts";

const MAX_MS = 20;
const MIB = 1024 * 1024;

const decode = (content: Content) => decodeContent(content, new Pieces(loopTime, "org:org_1", "fs_write"));

function whole({ text, encoding }: Content): Buffer | null {
  const bytes = Buffer.from(text, encoding);
  return encoding === "base64" && bytes.toString("base64") !== text ? null : bytes;
}

const base64 = (bytes: number) => Buffer.alloc(bytes, "ab\0\xff").toString("base64");
const FULL = "eHh4".repeat(PART_CHARACTERS / 4);

test.each<[string, Content]>([
  ["nothing", { text: "", encoding: "utf8" }],
  ["no bytes", { text: "", encoding: "base64" }],
  ["wide characters", { text: "語".repeat(PART_CHARACTERS + 1), encoding: "utf8" }],
  ["a character of two halves between parts", { text: `a${"😀".repeat(PART_CHARACTERS)}`, encoding: "utf8" }],
  ["halves of characters", { text: "\ud800".repeat(PART_CHARACTERS + 1), encoding: "utf8" }],
  ...[1, 2, 3, PART_CHARACTERS, PART_CHARACTERS + 1].map((bytes): [string, Content] => [
    `${bytes} bytes`,
    { text: base64(bytes), encoding: "base64" },
  ]),
  ["base64 without padding", { text: `${FULL}eA`, encoding: "base64" }],
  ["padding before the end", { text: `${FULL.slice(4)}eA==${FULL}`, encoding: "base64" }],
  ["padding within a part", { text: `eA==${FULL}`, encoding: "base64" }],
  ["bits beyond the last byte", { text: `${FULL}eB==`, encoding: "base64" }],
  ["characters of URLs", { text: `${FULL}-_-_`, encoding: "base64" }],
  ["a line break", { text: `${FULL}eHh\n`, encoding: "base64" }],
])("%s", async (_, content) => {
  const expected = whole(content);
  const bytes = await decode(content);
  expect(bytes === null ? null : Buffer.compare(bytes, expected ?? Buffer.alloc(0))).toBe(expected === null ? null : 0);
});

test.each<[string, Content]>([
  ["16 MiB in base64", { text: base64(16 * MIB), encoding: "base64" }],
  ["16 MiB of wide characters", { text: Buffer.from("語".repeat(5 * MIB)).toString(), encoding: "utf8" }],
])("%s is decoded in short turns", async (_, content) => {
  await decode(content);
  const longest = await longestTurn(() => decode(content));
  console.log(`longest turn: ${longest.toFixed(1)} ms`);
  expect(longest).toBeLessThan(boundOf(MAX_MS));
});
