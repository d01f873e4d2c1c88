/**
 * Code that would block the event loop: synchronous calls, reads without a limit, untrusted JSON that is parsed whole, and long work
 * without Pieces. Existing calls are listed by file; the lists only shrink.
 */
import { expect, test } from "vitest";
import { codeOfDaemon, linesThatMatch, read } from "./sources.ts";

type Counts = Record<string, number>;

/** Waits for writes or changes that arrive in the same turn; no work is done in them. */
const GATHERING = ["daemon/db/transact.ts", "daemon/cluster/rounds.ts"];
/** From the connection to the end of the call. */
const ALL_ROWS = /\bqueries\b(?:(?!\bqueries\b)[^;])*?\.all(?:\(\)|(?:<[^(]*>)?\(\s*sql`[^`]*`)/g;

const listOf = (name: string) => JSON.parse(read(`test/house/${name}`).text);
const countOf = (pattern: RegExp) => (text: string) => text.match(pattern)?.length ?? 0;
const sources = codeOfDaemon();

interface Rule {
  list: string;
  listed: Counts;
  of?: (path: string) => boolean;
  count(text: string): number;
  instead: string;
}

test.each<[string, Rule]>([
  [
    "synchronous calls",
    {
      list: "blocking.json",
      listed: Object.assign({}, ...Object.values(listOf("blocking.json"))),
      count: countOf(/\b[a-z]\w*Sync\(/g),
      instead: "use fs/promises, Pieces or a thread",
    },
  ],
  [
    "reads without a limit in stores",
    {
      list: "unlimited.json",
      listed: listOf("unlimited.json"),
      of: (path) => path.endsWith("/store.ts"),
      count: unlimitedReads,
      instead: "add .limit(), or `/** Bounded by MAX_… */` before the function",
    },
  ],
  [
    "texts parsed by JSON.parse, which are the daemon's own or counted as they arrive,",
    {
      list: "own-json.json",
      listed: listOf("own-json.json"),
      of: (path) => path !== "daemon/core/json.ts",
      count: countOf(/\bJSON\.parse\(/g),
      instead: "use parseJson of daemon/core/json.ts",
    },
  ],
])("there are as many %s as are listed, and no others", (_, { list, listed, of = () => true, count, instead }) => {
  const found: Counts = {};
  for (const { path, text } of sources) {
    const number = of(path) ? count(text) : 0;
    if (number > 0) found[path] = number;
  }
  const differing = (one: Counts, other: Counts) =>
    Object.keys(one).filter((path) => (one[path] ?? 0) > (other[path] ?? 0));
  expect(differing(found, listed), instead).toEqual([]);
  expect(differing(listed, found), `take what is gone from test/house/${list}`).toEqual([]);
});

test("long work uses Pieces, which measure time and take turns by owner", () => {
  const others = sources.filter(
    ({ path }) => !GATHERING.includes(path) && path !== "daemon/core/concurrency/next-turn.ts",
  );
  expect(others.flatMap((source) => linesThatMatch(source, /\bnextTurn\b/))).toEqual([]);
});

/** Calls of `.all()` without a limit of their statement or a bound named in the doc comment of their function. */
function unlimitedReads(text: string): number {
  // Declarations at the top level, each with its doc comment.
  const declarations = text.split(/\n\n(?=\/\*\*|export |function |const )/);
  return declarations
    .filter((each) => !/Bounded by (MAX|MOST)_/.test(each))
    .reduce((sum, each) => sum + (each.match(ALL_ROWS)?.filter((read) => !/\blimit\b/i.test(read)).length ?? 0), 0);
}
