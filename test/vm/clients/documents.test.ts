/** The commands in the documentation work: each page's blocks marked `sh test`, one after another in one shell. */
import { expect, test } from "vitest";
import { blocksOf, PAGES, typed } from "../../harness/documents.ts";
import { withGuests } from "../../harness/guests.ts";
import { sampled } from "../../harness/sampled.ts";

/** The first page that a newcomer follows: every check runs it. */
const GUIDE = "docs/guide.md";

const pages = PAGES.map((page) => ({ path: page.path, blocks: blocksOf(page, "sh test") })).filter(
  ({ blocks }) => blocks.length > 0,
);

test("there are pages with examples", () => {
  expect(pages.map(({ path }) => path)).toContain(GUIDE);
});

const guide = pages.filter(({ path }) => path === GUIDE);
const others = pages.filter(({ path }) => path !== GUIDE);

// A daemon each: a failure on one page does not affect the others.
for (const { path, blocks } of [...guide, ...sampled("pages", others)]) {
  withGuests(path, {}, (guests) => {
    test("runs as written", async () => {
      const { daemon } = guests;
      const { status, printed, errors } = await typed(daemon, path, blocks);
      const failure = `${printed}\n${errors}`.slice(-4000);
      expect([status, status === 0 ? "" : failure]).toEqual([0, ""]);
      // Each ran to its end, and the last of them leave nothing running.
      expect(printed.match(/^--- /gm)?.length).toBe(blocks.length);
      expect(daemon.leftovers().filter((line) => line.startsWith("process"))).toEqual([]);
    }, 300_000);
  });
}
