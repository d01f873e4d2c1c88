/** A guest's console log that is made slow to read, and the longest turn of the event loop during the read. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loopTime, Pieces } from "../../../daemon/core/loop/index.ts";
import { readConsole } from "../../../daemon/host/machine/console.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

/** Bounded reads take 1 to 3 ms; the rest allows for the compilers of a process that has just started. */
const MAX_MS = 20;
const SEGMENT_BYTES = 1024 * 1024;
const AGENT = "roomd-agent: ";

const pieces = () => new Pieces(loopTime, "org:org_1", "sandbox_logs");

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-console-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

function fill(text: string): void {
  const bytes = Buffer.from(text.repeat(Math.ceil(SEGMENT_BYTES / text.length)));
  for (const begin of [0, bytes.length])
    writeFileSync(join(directory, `${String(begin).padStart(15, "0")}.log`), bytes);
}

test.each([
  ["empty lines", "\n"],
  ["empty lines of a terminal", "\r\n"],
  ["lines that nearly begin as the agent's", `${AGENT.slice(0, -1)}\n`],
  ["the agent's own lines", `${AGENT}\n`],
  ["no line at all", "roomd-agent: x"],
])("%s are searched for the agent's lines in short turns", async (_, text) => {
  fill(text);
  await readConsole(directory, 0, { limit: 1000, prefix: AGENT, pieces: pieces() });
  const longest = await longestTurn(() =>
    Promise.all(
      Array.from({ length: 8 }, () => readConsole(directory, 0, { limit: 1000, prefix: AGENT, pieces: pieces() })),
    ),
  );
  expect(longest).toBeLessThan(boundOf(MAX_MS));
});

test("lines of a MiB are cut, even if each character takes six in JSON", async () => {
  fill(`${"\u0001".repeat(SEGMENT_BYTES - 1)}\n`);
  let answer = "";
  const longest = await longestTurn(async () => {
    answer = JSON.stringify(await readConsole(directory, 0, { limit: 1000, pieces: pieces() }));
  });
  expect(longest).toBeLessThan(boundOf(MAX_MS));
  expect(answer.length).toBeLessThan(128 * 1024);
});
