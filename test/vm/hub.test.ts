/**
 * The worked example of docs/agents.md followed in the hub, with real guests and a real browser, from the first message to the merge;
 * then agents that wait for each other, a name that is refused, and a terminal whose program wishes for more than to be looked at.
 */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { BINARY, type Json, type TestDaemon } from "../harness/daemon.ts";
import { blocksOf, PAGES } from "../harness/documents.ts";
import { freePort } from "../harness/free-port.ts";
import { testAlone, until } from "../harness/guests.ts";
import { realNode } from "../harness/real-terminal.ts";
import { TerminalClient } from "../harness/terminal-client.ts";
import { Visitor } from "../harness/visitor.ts";

const READER = join(import.meta.dirname, "../harness/example-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const REFUSED = "left.example";
const DEADLINE_MS = 300_000;
const TERMINALS = "/v1/rooms/team/sandboxes/worker/terminals";
/** A title, the clipboard, a link, and a question whose answer would be typed. */
const WISHES = String.raw`printf 'seen \033]0;stolen\007\033]52;c;c3RvbGVu\007\033]8;;https://stolen.example\007link\033]8;;\007 \033[6nhere\n'`;

const page = PAGES.find(({ path }) => path === "docs/agents.md");
const [example = ""] = page ? blocksOf(page, "sh test").map(({ text }) => text) : [];

test("there is an example, and a browser to follow it in", () => {
  expect(example).toContain("room barrier merged");
  if (!existsSync(CHROMIUM)) console.log(`the example in the hub: left out, because there is no ${CHROMIUM}`);
});

if (existsSync(CHROMIUM)) {
  // It is restarted at the same address.
  const env = { ROOMD_HTTP_LISTEN: `127.0.0.1:${await freePort()}` };
  testAlone("three agents are followed from the first message to the merge", { env }, follow, DEADLINE_MS);
}

async function follow(daemon: TestDaemon): Promise<void> {
  const owner = await Visitor.owner(daemon);
  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const told = JSON.stringify({ cookies: [...owner.cookies], refused: REFUSED });
  const argv = [realNode(), READER, CHROMIUM, daemon.url, pictures, told];
  const reader = Bun.spawn(argv, { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  const errors = reader.stderr.text();
  let running: Promise<[number, string]> | null = null;
  const inRoom = (agent: string, line: string) => daemon.exec("team", agent, { command: line, timeout_ms: 60_000 });
  let terminal: Json;
  /** What they give back is told to the reader. */
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
      await inRoom("reviewer", `curl -sS -m 5 http://${REFUSED}/`);
    },
    "open a terminal": async () => {
      terminal = await daemon.ok("POST", TERMINALS, { rows: 24, cols: 80 });
      const client = await TerminalClient.attach(daemon, terminal.ws_path);
      await client.shows("# ");
      client.type(`${WISHES}\r`);
      await client.shows("here\r\n");
      client.drop();
    },
    "make a ticket": async () => (await daemon.ok("POST", `${TERMINALS}/${terminal.terminal_id}/token`, {})).token,
    "stop the service": () => daemon.end("SIGKILL"),
    "start the service": async () => {
      await daemon.serve();
      await until("the sandbox is back", async () => {
        return (await daemon.api("GET", `${TERMINALS}/${terminal.terminal_id}`)).status === 200;
      });
    },
  };
  const printed: string[] = [];
  for await (const line of createInterface({ input: Readable.fromWeb(reader.stdout as never) })) {
    printed.push(line);
    if (!does[line]) continue;
    const told = await does[line]();
    reader.stdin.write(`${JSON.stringify(typeof told === "string" ? told : null)}\n`);
    reader.stdin.flush();
  }
  expect([await reader.exited, await errors]).toEqual([0, ""]);
  const seen: Json = JSON.parse(printed.at(-1) ?? "");
  console.log(
    `a refused name is seen ${seen.refusal_ms} ms after it is on record; a deadlock ${seen.deadlock_ms} ms after its last message; pictures: ${pictures}`,
  );
  expect(seen.deadlock).toMatch(/planner.*worker|worker.*planner/);
  // Seen as it happens, and not with the next look; how soon that is, is printed.
  expect(seen.refusal_ms).toBeLessThan(10_000);
  expect(seen.merged).toContain("worker: add: sums its arguments");
  // A terminal that is watched draws, and does nothing else.
  expect([seen.terminal.title, seen.terminal.clipboard, seen.terminal.answered]).toEqual([
    "worker in team · terminal · roomd",
    "untouched",
    0,
  ]);
  expect(seen.terminal.again).toContain("seen link here");
  expect(seen.terminal.typed).toContain("you type");
  // That the service was gone for a while is on the console as failed loads.
  const complaints = seen.complaints.filter(
    (each: string) => !/ERR_(?:INCOMPLETE_CHUNKED|CONNECTION|EMPTY)/.test(each),
  );
  expect([complaints, seen.strangers, seen.overflows, seen.violations]).toEqual([[], [], [], []]);
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
