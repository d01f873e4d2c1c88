/** Words that CONTRIBUTING.md avoids, by folder: their density in comments and pages is bounded (language.ts). */
import { describe, expect, test } from "vitest";
import { KINDS, MAX_PER_THOUSAND } from "./language.ts";
import { countsOf, linesWith, proseByFolder } from "./prose.ts";

/** Allowed in any folder, however few words it has; none of a banned phrase. */
const FEW = 2;
/** Lines that quote what they are about. */
const QUOTES = ["CONTRIBUTING.md:"];

test("banned words are detected", () => {
  const lines = [
    { at: "a:1", text: "What whoever asked for is told at once, where one that says nothing goes on." },
    { at: "a:2", text: "Returns the number of retries." },
  ];
  expect(countsOf(lines)).toEqual({ words: 20, banned: 5, what: 1, who: 0, say: 1, ask: 1, where: 1, "one that": 1 });
  expect(linesWith(lines, "banned")).toHaveLength(1);
});

describe.each([...proseByFolder()])("%s", (_, all) => {
  const lines = all.filter(({ at }) => !QUOTES.some((quote) => at.startsWith(quote)));
  const counts = countsOf(lines);
  test.each(KINDS)("has few of %s", (kind) => {
    const max = kind === "banned" ? 0 : Math.max(FEW, (counts.words * MAX_PER_THOUSAND[kind]) / 1000);
    if (counts[kind] > max) expect(linesWith(lines, kind), `${counts[kind]}, and at most ${max}`).toEqual([]);
  });
});
