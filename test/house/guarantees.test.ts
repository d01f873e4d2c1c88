/** docs/guarantees.md against the guarantees that the API returns, and against the tests that it names. */
import { expect, test } from "vitest";
import { GUARANTEES, NON_GUARANTEES } from "../../daemon/domain/service/guarantees.ts";
import { claimsIn, lastRuns, limitsIn } from "../check/guarantees.ts";
import { pageAt } from "../harness/documents.ts";
import { filesOf } from "./sources.ts";

const { text } = pageAt("docs/guarantees.md");
const claims = claimsIn(text);

test("the page makes the claims of the API, in their order, and no others", () => {
  expect(claims.map((claim) => claim.text)).toEqual(GUARANTEES);
  expect(limitsIn(text)).toEqual(NON_GUARANTEES);
});

test.each(claims)("existing tests cover: $text", ({ tests }) => {
  const there = new Set(filesOf("test"));
  expect(tests.length).toBeGreaterThan(0);
  expect(tests.filter((path) => !(there.has(path) && /^test\/(unit|api|vm|host)\/.*\.test\.ts$/.test(path)))).toEqual(
    [],
  );
});

test("each claim is printed with the time at which the last check started its tests", () => {
  const page = "1. One thing holds.\n   Tests: `test/api/a.test.ts`, `test/vm/b.test.ts`\n";
  const file = { file: "test/api/a.test.ts", ring: "api", startedAt: Date.UTC(2026, 0, 2, 3, 4, 5), seconds: 1 };
  expect(lastRuns(claimsIn(page), [file])).toEqual([
    "1. One thing holds.",
    "     2026-01-02T03:04:05    test/api/a.test.ts",
    "     not in the last check  test/vm/b.test.ts",
  ]);
});
