/**
 * Synchronous calls in code that the event loop runs: while one waits for the disk, or works on what somebody else has sized, nobody is answered.
 * Those that there are stand in blocking.json, by when they run; the list only shrinks.
 */
import { expect, test } from "vitest";
import { codeOf, read } from "./sources.ts";

type Counts = Record<string, number>;

const SYNCHRONOUS = /\b[a-z]\w*Sync\(/g;
/** Processes of their own, and pages. */
const ELSEWHERE = ["daemon/cli/", "daemon/web/"];

const listed: Counts = Object.assign({}, ...Object.values(JSON.parse(read("test/house/blocking.json").text)));

test("there are as many synchronous calls as are listed, and no others", () => {
  const found: Counts = {};
  for (const { path, text } of codeOf("daemon")) {
    if (ELSEWHERE.some((folder) => path.startsWith(folder))) continue;
    const count = text.match(SYNCHRONOUS)?.length ?? 0;
    if (count > 0) found[path] = count;
  }
  const differing = (one: Counts, other: Counts) =>
    Object.keys(one).filter((path) => (one[path] ?? 0) > (other[path] ?? 0));
  expect(differing(found, listed), "use fs/promises, Pieces or a thread instead").toEqual([]);
  expect(differing(listed, found), "take what is gone from test/house/blocking.json").toEqual([]);
});
