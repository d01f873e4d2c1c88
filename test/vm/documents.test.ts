/** What the documents tell a stranger to type works: each page's blocks marked `sh test`, one after another in one shell. */
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { BINARY } from "../harness/daemon.ts";
import { blocksOf, PAGES } from "../harness/documents.ts";
import { withGuests } from "../harness/guests.ts";

const pages = PAGES.map((page) => ({ path: page.path, blocks: blocksOf(page, "sh test") })).filter(
  ({ blocks }) => blocks.length > 0,
);

test("there are pages with examples", () => {
  expect(pages.map(({ path }) => path)).toContain("docs/guide.md");
});

// A daemon each: what fails on one page leaves the others alone.
for (const { path, blocks } of pages) {
  withGuests(path, {}, (guests) => {
    test("runs as it stands", async () => {
      const { daemon } = guests;
      const script = blocks.map(({ line, text }) => `echo "--- ${path} line ${line}"\n${text}`);
      // Not on its standard input, which commands would read.
      const shell = Bun.spawn(["bash", "-e", "-o", "pipefail", "-c", script.join("\n")], {
        env: {
          ...daemon.env,
          // As quickstart leaves it.
          PATH: `${dirname(BINARY)}:${daemon.env.PATH}`,
          HOME: daemon.home,
          ROOMD_URL: daemon.url,
          ROOMD_API_KEY: daemon.apiKey,
        },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      const [status, printed, errors] = await Promise.all([shell.exited, shell.stdout.text(), shell.stderr.text()]);
      const failure = `${printed}\n${errors}`.slice(-4000);
      expect([status, status === 0 ? "" : failure]).toEqual([0, ""]);
      // Each ran to its end, and the last of them leave nothing running.
      expect(printed.match(/^--- /gm)?.length).toBe(blocks.length);
      expect(daemon.leftovers().filter((line) => line.startsWith("process"))).toEqual([]);
    }, 300_000);
  });
}
