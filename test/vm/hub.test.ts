/**
 * The worked example of docs/agents.md followed in the hub, with real guests and a real browser, from the first message to the merge;
 * then agents that wait for each other, and a name that is refused.
 */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { BINARY, type Json, type TestDaemon } from "../harness/daemon.ts";
import { blocksOf, PAGES } from "../harness/documents.ts";
import { testAlone } from "../harness/guests.ts";
import { realNode } from "../harness/real-terminal.ts";
import { Visitor } from "../harness/visitor.ts";

const READER = join(import.meta.dirname, "../harness/example-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const REFUSED = "left.example";
const DEADLINE_MS = 300_000;

const page = PAGES.find(({ path }) => path === "docs/agents.md");
const [example = ""] = page ? blocksOf(page, "sh test").map(({ text }) => text) : [];

test("there is an example, and a browser to follow it in", () => {
  expect(example).toContain("room barrier merged");
  if (!existsSync(CHROMIUM)) console.log(`the example in the hub: left out, because there is no ${CHROMIUM}`);
});

if (existsSync(CHROMIUM)) {
  testAlone("three agents are followed from the first message to the merge", {}, follow, DEADLINE_MS);
}

async function follow(daemon: TestDaemon): Promise<void> {
  const owner = await Visitor.owner(daemon);
  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const told = JSON.stringify({ cookies: [...owner.cookies], refused: REFUSED });
  const argv = [realNode(), READER, CHROMIUM, daemon.url, pictures, told];
  const reader = Bun.spawn(argv, { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  const complaints = reader.stderr.text();
  let running: Promise<[number, string]> | null = null;
  const inRoom = (agent: string, line: string) => daemon.exec("team", agent, { command: line, timeout_ms: 60_000 });
  const does: Record<string, () => Promise<unknown>> = {
    "begin the example": async () => {
      running = asDocumented(daemon);
    },
    "end the example": async () => expect(await running).toEqual([0, ""]),
    // Nobody waits in a call any more, and yet none of them goes on.
    deadlock: async () => {
      await inRoom("planner", "room request worker 'which file?' --timeout 1s");
      await inRoom("worker", "room request planner 'which branch?' --timeout 1s");
    },
    refuse: async () => {
      await daemon.ok("PUT", "/v1/rooms/team/sandboxes/reviewer/egress", { allowlist: ["kept.example"] });
      await inRoom("reviewer", `getent hosts ${REFUSED}`);
    },
  };
  const printed: string[] = [];
  for await (const line of createInterface({ input: Readable.fromWeb(reader.stdout as never) })) {
    printed.push(line);
    if (!does[line]) continue;
    await does[line]();
    reader.stdin.write("\n");
    reader.stdin.flush();
  }
  expect([await reader.exited, await complaints]).toEqual([0, ""]);
  const seen: Json = JSON.parse(printed.at(-1) ?? "");
  console.log(
    `a refused name is seen ${seen.refusal_ms} ms after it is on record; a deadlock ${seen.deadlock_ms} ms after its last message; pictures: ${pictures}`,
  );
  expect(seen.deadlock).toMatch(/planner.*worker|worker.*planner/);
  // An egress refusal is seen within a second: a promise of the hub, whatever the machine.
  expect(seen.refusal_ms).toBeLessThan(1000);
  expect(seen.merged).toContain("worker: add: sums its arguments");
  expect([seen.complaints, seen.strangers, seen.overflows, seen.violations]).toEqual([[], [], [], []]);
}

/** Its exit code, and what it complained of. */
async function asDocumented(daemon: TestDaemon): Promise<[number, string]> {
  const env = {
    ...daemon.env,
    PATH: `${dirname(BINARY)}:${daemon.env.PATH}`,
    HOME: daemon.home,
    ROOMD_URL: daemon.url,
    ROOMD_API_KEY: daemon.apiKey,
  };
  const shell = Bun.spawn(["bash", "-e", "-o", "pipefail", "-c", example], {
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [status, printed, errors] = await Promise.all([shell.exited, shell.stdout.text(), shell.stderr.text()]);
  return [status, status === 0 ? "" : `${printed}\n${errors}`.slice(-4000)];
}
