/** What the README tells a stranger to type works: its blocks marked `sh test`, one after another in one shell. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { withGuests } from "../harness/guests.ts";

const FENCE = /^```sh test\n([\s\S]*?)^```$/gm;
const README = "README.md";

withGuests("the README's examples", {}, (guests) => {
  test("run as they stand", async (context) => {
    const text = readFileSync(README, "utf8");
    const blocks = [...text.matchAll(FENCE)];
    if (blocks.length === 0) return context.skip(`${README} has no block marked \`sh test\``);
    const script = blocks.map(({ index, 1: block }) => {
      const line = text.slice(0, index).split("\n").length;
      return `echo "--- ${README} line ${line}"\n${block}`;
    });
    const { daemon } = guests;
    // Not on its standard input, which commands would read.
    const shell = Bun.spawn(["bash", "-e", "-o", "pipefail", "-c", script.join("\n")], {
      env: { ...daemon.env, HOME: daemon.home, ROOMD_URL: daemon.url, ROOMD_API_KEY: daemon.apiKey },
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
