/** The state in a room's file from outside, made to be slow to parse, and the longest turn of the event loop meanwhile. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readForeignState } from "../../../daemon/domain/rooms/backup/state.ts";
import { boundOf, longestTurn } from "../../harness/longest-turn.ts";

/** Values are counted as the bytes arrive, in under a millisecond; to parse such a line takes 60 to 180. */
const MOST_MS = 20;
const LINE_BYTES = 4_000_000;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-state-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const read = (file: string) =>
  readForeignState(file, {} as Parameters<typeof readForeignState>[1], { takenAtMs: 0, org_id: null });

test.each([
  ["empty lists", `{"rows":0,"some":[[${"[],".repeat(LINE_BYTES / 3)}0]]}\n`],
  ["numbers", `{"rows":0,"some":[[${"1,".repeat(LINE_BYTES / 2)}0]]}\n`],
  ["lists in lists", `${"[".repeat(LINE_BYTES)}\n`],
])("a line of %s is refused before it is parsed", async (_, line) => {
  const file = join(directory, "state");
  writeFileSync(file, line);
  // Compiled before it is measured.
  await expect(read(file)).rejects.toThrow("is none that a roomd has written");
  const longest = await longestTurn(() => expect(read(file)).rejects.toThrow("is none that a roomd has written"));
  console.log(`longest turn: ${longest.toFixed(1)} ms`);
  expect(longest).toBeLessThan(boundOf(MOST_MS));
});
