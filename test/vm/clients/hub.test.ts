/**
 * The hub with real guests and a real browser. The worked example of docs/agents.md is followed from the first message to the merge; then
 * agents that wait for each other, a refused name, and a program that sends requests to its terminal. Also all pages of an agent with a
 * guest that outputs nothing but hostile data are viewed and used.
 */
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { PROMPTS } from "../../../shared/prompts/catalogue.ts";
import { fill } from "../../../shared/prompts/prompt.ts";
import { CHROMIUM, type Does, hasBrowser, seenBy } from "../../harness/browser/seen-by.ts";
import { TerminalClient } from "../../harness/clients/terminal-client.ts";
import { BINARY, type Json, type TestDaemon } from "../../harness/daemon.ts";
import { blocksOf, PAGES } from "../../harness/documents.ts";
import { freePort } from "../../harness/free-port.ts";
import { LONG, testAlone, until } from "../../harness/guests.ts";
import { HOSTILE, HOSTILE_SANDBOX, hostileCalls, hostileCommands, longCalls } from "../../harness/hostile-room.ts";

const REFUSED = "left.example";
const DEADLINE_MS = 600_000;
/** Of a guest that others leave an eighth of a core. */
const COMMAND_MS = 100_000;
/** Deadline for a refusal to appear; on an overloaded machine, the time in which `ROOMS_SEEN` new rooms appear one after another. */
const REFUSAL_SEEN_MS = 1000;
const ROOMS_SEEN = 4;
/** A task that is longer hangs the page. */
const HANG_MS = 1000;
const TERMINALS = "/v1/rooms/team/sandboxes/worker/terminals";
/** A title, the clipboard, a link, and a query to which the terminal would type an answer. */
const WISHES = String.raw`printf 'seen \033]0;stolen\007\033]52;c;c3RvbGVu\007\033]8;;https://stolen.example\007link\033]8;;\007 \033[6nhere\n'`;

/** A line that is as long as that; to a screen much less is much. */
const longLine = (bytes: number) => `head -c ${bytes} /dev/zero | tr '\\0' x; echo; echo the line is ov''er`;

const page = PAGES.find(({ path }) => path === "docs/agents.md");
const [example = ""] = page ? blocksOf(page, "sh test").map(({ text }) => text) : [];

test("an example and a browser are available", () => {
  expect(example).toContain("room barrier merged");
  if (!hasBrowser) console.log(`the example in the hub: left out, because there is no ${CHROMIUM}`);
});

if (hasBrowser) {
  // It is restarted at the same address.
  const env = { ROOMD_HTTP_LISTEN: `127.0.0.1:${await freePort()}` };
  testAlone("three agents are followed from the first message to the merge", { env }, follow, DEADLINE_MS);
  if (LONG) testAlone("every page of an agent is looked at and tried, whatever its guest says", {}, visit, DEADLINE_MS);
  else console.log("every page of an agent: left out; ROOMD_TEST_LONG=1 tests all");
}

async function follow(daemon: TestDaemon): Promise<void> {
  let running: Promise<[number, string]> | null = null;
  const inRoom = (agent: string, line: string) => daemon.exec("team", agent, { command: line, timeout_ms: 60_000 });
  let terminal: Json;
  const does: Does = {
    "begin the example": async () => {
      running = asDocumented(daemon);
    },
    "end the example": async () => expect(await running).toEqual([0, ""]),
    // No call is waiting any more, and still no agent can continue.
    deadlock: async () => {
      await inRoom("planner", "room request worker 'which file?' --timeout 1s");
      await inRoom("worker", "room request planner 'which branch?' --timeout 1s");
    },
    "make a room": () => daemon.room("just-made"),
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
  const seen = await seenBy("example-reader.mjs", daemon, { refused: REFUSED }, does);
  console.log(
    `a refused name is seen ${seen.refusal_ms} ms after it is on record, a new room ${seen.room_ms} ms; a deadlock ${seen.deadlock_ms} ms after its last message`,
  );
  expect(seen.deadlock).toMatch(/planner.*worker|worker.*planner/);
  expect(seen.refusal_ms).toBeLessThan(Math.max(REFUSAL_SEEN_MS, seen.room_ms * ROOMS_SEEN));
  expect(seen.merged).toContain("worker: add: sums its arguments");
  // A terminal that is watched draws, and does nothing else.
  expect([seen.terminal.title, seen.terminal.clipboard, seen.terminal.answered]).toEqual([
    expect.stringMatching(/\bworker\b.*\bteam\b/),
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

async function visit(daemon: TestDaemon): Promise<void> {
  const { room, hosts, longFile } = HOSTILE;
  const agent = "worker";
  const sandbox = `/v1/rooms/${room}/sandboxes/${agent}`;
  for (const [method, path, body] of [...hostileCalls(), ...longCalls()]) await daemon.ok(method, path, body);
  await daemon.sandbox(room, agent, 9200, HOSTILE_SANDBOX);
  for (const { body, ends } of hostileCommands()) {
    const answer = await daemon.api("POST", `${sandbox}/exec`, { timeout_ms: COMMAND_MS, ...body });
    expect(answer.body).toMatchObject(ends);
  }
  const { items } = await daemon.ok("GET", `${sandbox}/network`);
  expect(items.map(({ host }: Json) => host)).toContain(hosts.at(-1));
  await daemon.ok("POST", `${sandbox}/ports`, { port: 8000, label: `a${"-".repeat(29)}z`, visibility: "public" });
  await daemon.ok("POST", `${sandbox}/ports`, { port: 65_535, label: "9" });

  const write = (text: string) =>
    daemon.ok("POST", `${sandbox}/executions/live/stdin`, { data_b64: Buffer.from(text).toString("base64") });
  const key = await daemon.ok("POST", "/v1/orgs/self/keys", { name: HOSTILE.texts[0] });
  let terminal: Json;
  const typed = async (keys: string, shown: string) => {
    const client = await TerminalClient.attach(daemon, terminal.ws_path);
    client.type(`${keys}\r`);
    await client.shows(shown, 60_000);
    client.drop();
    await client.closed;
  };
  const seen = await seenBy(
    "agent-reader.mjs",
    daemon,
    { room, agent, longFile },
    {
      "open a terminal": async () => {
        terminal = await daemon.ok("POST", `${sandbox}/terminals`, { rows: 24, cols: 80 });
        await typed(WISHES, "here\r\n");
      },
      "begin a command": async () => {
        const command = `echo it has beg''un; read -r x; ${longLine(10_000_000)}; read -r x`;
        await daemon.ok("POST", `${sandbox}/executions`, { exec_id: "live", command, timeout_ms: DEADLINE_MS });
      },
      "print a long line": () => write("\n"),
      "end the command": () => write("\n"),
      "print a long line in the terminal": () => typed(longLine(1_000_000), "x".repeat(100)),
      "make a ticket": async () => {
        const by = { authorization: `Bearer ${key.key}` };
        return (await daemon.api("POST", `${sandbox}/terminals/${terminal.terminal_id}/token`, {}, by)).body.token;
      },
      "revoke the key": () => daemon.ok("DELETE", `/v1/orgs/self/keys/${key.key_id}`),
      "type something else": () => typed("echo something-els''e", "something-else"),
    },
  );
  const { longest_ms: longest, took_ms: took, pressed } = seen;
  console.log(
    `a line of 10 MB takes the page ${longest.command} ms in its longest task as a command's output, and one of 1 MB ${longest.terminal} ms in a terminal; controls pressed: ${JSON.stringify(pressed)}; ms for each page: ${JSON.stringify(took)}`,
  );
  const { dialogs, asked, unpressed, complaints, strangers, overflows, violations } = seen;
  expect({ dialogs, asked, unpressed, complaints, strangers, overflows, violations }).toEqual({
    ...{ dialogs: [], asked: [], unpressed: [], strangers: [], overflows: [], violations: [] },
    // That a sleeper's network was gone is on the console as failed loads.
    complaints: complaints.filter((each: string) => each.includes("ERR_INTERNET_DISCONNECTED")),
  });
  expect(Math.min(...Object.values<number>(pressed))).toBeGreaterThan(0);
  expect(Math.max(longest.command, longest.terminal)).toBeLessThan(HANG_MS);
  expect(seen.title).toMatch(new RegExp(`${agent}\\b.*\\b${room}\\b`));

  // The copied text is the catalogue's, with the names of the page.
  const known = PROMPTS.map((prompt) => fill(prompt, { room, agent }));
  for (const text of seen.prompts) expect(known).toContain(text);
  const about = `agent \`${agent}\` in room \`${room}\``;
  expect(seen.prompts.filter((text: string) => text.includes(about)).length).toBeGreaterThan(2);
  const { texts, ...names } = seen.prompts_page;
  expect(names).toEqual({ room, agent });
  for (const prompt of PROMPTS) expect(texts[prompt.name]).toBe(fill(prompt, { room, agent }));

  expect(seen.sent_by_watching).toBe(0);
  expect(seen.badge).toContain("types, for");
  // The content stays while it is disconnected; nothing is missing or duplicated afterwards.
  expect(seen.asleep).toContain("seen link here");
  expect(seen.awake.match(/seen link here|typed-42/g)).toEqual(["seen link here", "typed-42"]);
  // Keys typed at a revoked terminal are not sent, and are not taken for shortcuts of the page.
  expect(seen.revoked).toEqual({
    sent: 0,
    drawn: expect.not.stringContaining("too-late"),
    says_why: 1,
    has_ticket: true,
    is_there: true,
    dialogs: 0,
  });
}

/** The example's exit code and standard error. */
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
