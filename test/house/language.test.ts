/**
 * Words that CONTRIBUTING.md avoids, by folder: language.json has the budget of each folder, which only decreases. `bun
 * test/house/language.ts` lowers it to the present counts.
 */
import { describe, expect, test } from "vitest";
import BUDGETS from "./language.json";
import { BOUNDED, type Budget } from "./language.ts";
import { countsOf, linesWith, proseByFolder } from "./prose.ts";

const prose = proseByFolder();
const budgets: Record<string, Budget> = BUDGETS;

test("banned words are detected", () => {
  const lines = [
    { at: "a:1", text: "What whoever asked for is told at once, where one that says nothing goes on." },
    { at: "a:2", text: "Returns the number of retries." },
  ];
  expect(countsOf(lines)).toEqual({ words: 20, banned: 5, what: 1, who: 0, say: 1, ask: 1, where: 1, "one that": 1 });
  expect(linesWith(lines, "banned")).toHaveLength(1);
});

test("each folder with prose has a budget, and no other", () => {
  expect(Object.keys(budgets).sort()).toEqual([...prose.keys()].sort());
});

describe.each([...prose])("%s", (folder, lines) => {
  const counts = countsOf(lines);
  test.each(BOUNDED)("has at most its budget of %s", (kind) => {
    const most = budgets[folder]?.[kind] ?? 0;
    if (counts[kind] > most) expect(linesWith(lines, kind), `${counts[kind]}, and at most ${most}`).toEqual([]);
    expect(counts[kind], "lower the budget: bun test/house/language.ts").toBe(most);
  });
});
