/** The agent's terminals and the host's half, on this host: the command's view, backpressure, and re-attachment by offset. */
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { attachTerminal, closeTerminal, listTerminals, refusalOf } from "../../../daemon/host/guest-link/terminal.ts";
import { until } from "../../harness/guests.ts";
import { TerminalFixture, watch } from "./terminal-fixture.ts";

const agent = new TerminalFixture();
const { link } = agent.connect();
const stateOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[2];
const openFiles = () => readdirSync("/proc/self/fd").length;
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

test("a command has its own terminal, of the right size, and its exit code comes after all its bytes", async () => {
  const id = await agent.open(link, "tty; stty size; echo $TERM; ps -o tty= -p $$; exit 7", { rows: 33, cols: 101 });
  const screen = await watch(link, id);
  expect(await screen.terminal.ended).toMatchObject({ exit_code: 7, signal: null });
  await screen.over;
  const [tty, size, term, of] = screen.text.split("\r\n");
  expect([size, term]).toEqual(["33 101", "xterm"]);
  expect(tty).toBe(`/dev/${of?.trim()}`);
});

test("a login shell is the user's, and ctrl-c reaches its foreground command", async () => {
  // None of this host's own profile: it may take long, and be interrupted here halfway.
  const home = mkdtempSync(join(tmpdir(), "roomd-home-"));
  const id = await agent.open(link, null, { env: { PS1: "> ", HISTFILE: "", HOME: home } });
  const screen = await watch(link, id);
  // Printed by the foreground process: the shell itself would print it before that process is there to be interrupted.
  await screen.type(`shopt -q login_shell && sh -c 'echo is-"login"; exec sleep 1000'\r`);
  await until("the foreground command has started", () => screen.text.includes("is-login\r\n"));
  await screen.type("\x03echo code-$?\r");
  await until("sleep was interrupted", () => screen.text.includes("code-130\r\n"));
  await screen.type("exit 3\r");
  expect(await screen.terminal.ended).toMatchObject({ exit_code: 3 });
  rmSync(home, { recursive: true });
});

test("a resize reaches the command as SIGWINCH, and a signal its foreground group", async () => {
  const id = await agent.open(
    link,
    "trap 'stty size' WINCH; trap 'echo told; exit 5' USR1; echo up; while :; do read -t 0.05; done",
  );
  const screen = await watch(link, id);
  await until("the command is running", () => screen.text.includes("up"));
  screen.terminal.resize(50, 132);
  await until("the new size is applied", () => screen.text.includes("50 132"));
  screen.terminal.signal("SIGUSR1");
  expect(await screen.terminal.ended).toMatchObject({ exit_code: 5 });
  expect(screen.text).toContain("told");
});

test("every byte passes unchanged, both ways", async () => {
  const all = Uint8Array.from({ length: 256 * 64 }, (_, index) => index % 256);
  const id = await agent.open(link, `stty raw -echo; echo ready; exec head -c ${all.byteLength}`);
  const screen = await watch(link, id);
  await until("the terminal is in raw mode", () => screen.text.includes("ready"));
  await screen.type(all);
  await screen.over;
  expect(sha256(screen.bytes.subarray(-all.byteLength))).toBe(sha256(all));
});

test("all output of a command is shown, even if it has long ended", async () => {
  const id = await agent.open(link, "stty -opost; seq 1 8000");
  await until(
    "the terminal has ended",
    async () => (await listTerminals(link)).find((each) => each.terminal_id === id)?.end,
  );
  const screen = await watch(link, id);
  await screen.over;
  expect(screen.text).toBe(Array.from({ length: 8000 }, (_, index) => `${index + 1}\n`).join(""));
});

test("a command waits for an attached client that does not read", async () => {
  const id = await agent.open(link, "echo pid-$$; exec yes");
  const { terminal_id } = (await listTerminals(link)).find((each) => each.terminal_id === id) ?? { terminal_id: "" };
  const slow = await attachTerminal(link, { terminal_id, since: 0, takeover: false });
  slow.ended.catch(() => {});
  const output = slow.output[Symbol.asyncIterator]();
  let pid: string | undefined;
  // A line may come in parts.
  for (let shown = ""; pid === undefined; pid = /pid-(\d+)\r/.exec(shown)?.[1]) {
    const { value, done } = await output.next();
    if (done) throw new Error(`the terminal showed only ${shown}`);
    shown += Buffer.from(value).toString();
  }
  const used = () => readFileSync(`/proc/${pid}/stat`, "utf8").split(" ").slice(13, 15).join();
  const isStill = async () => {
    const before = used();
    await Bun.sleep(300);
    return used() === before;
  };
  await until("yes is blocked", isStill);
  const shown = (await listTerminals(link)).find((each) => each.terminal_id === id)?.offset ?? 0;
  // The window of the link, the permitted backlog, and the reader's own pieces.
  expect(shown).toBeLessThan(1024 * 1024);
  for (let taken = 0; taken < 2 * shown; ) taken += (await output.next()).value?.byteLength ?? Number.NaN;
  slow.detach();
  await closeTerminal(link, id, true);
});

test("a client that resumes by offset sees the same as one that never left", async () => {
  const line = "stty -opost; for i in $(seq 1 3000); do echo line-$i; done; read -r; seq 1 2000";
  const whole = await agent.open(link, line);
  const cut = await agent.open(link, line);
  const steady = await watch(link, whole);
  const before = Array.from({ length: 3000 }, (_, index) => `line-${index + 1}\n`).join("").length;
  const pieces: Buffer[] = [];
  let offset = 0;
  for (let round = 0; round < 20; round++) {
    const { link: own, drop } = agent.connect();
    const screen = await watch(own, cut, offset, true);
    expect(screen.terminal.offset).toBe(offset);
    const want = 200 * (round + 1);
    await until(
      "the requested output is received",
      () => screen.bytes.byteLength >= want || offset + screen.bytes.byteLength === before,
    );
    drop();
    await screen.over;
    pieces.push(screen.bytes);
    offset += screen.bytes.byteLength;
  }
  const last = await watch(link, cut, offset, true);
  // Input is echoed at the command's current position: both have to be at the same place.
  await until("both screens have all output", () => steady.bytes.byteLength === before && offset === before);
  for (const screen of [steady, last]) await screen.type("\r");
  await Promise.all([steady.over, last.over]);
  expect(sha256(Buffer.concat([...pieces, last.bytes]))).toBe(sha256(steady.bytes));
});

test("a detached command continues, and an offset already dropped starts at the oldest retained byte", async () => {
  const id = await agent.open(link, "stty -opost; seq 1 400000; read -r");
  const all = Array.from({ length: 400_000 }, (_, index) => `${index + 1}\n`).join("");
  await until(
    "the terminal has printed all output",
    async () => (await listTerminals(link)).find((each) => each.terminal_id === id)?.offset === all.length,
  );
  const screen = await watch(link, id, 100);
  expect(screen.terminal.offset).toBe(all.length - 1024 * 1024);
  await until("the retained output is received", () => screen.bytes.byteLength >= 1024 * 1024);
  expect(sha256(screen.bytes)).toBe(sha256(Buffer.from(all.slice(screen.terminal.offset))));
  await closeTerminal(link, id, true);
});

test("a second client is refused, or takes over", async () => {
  const id = await agent.open(link, "read -r; echo got-$REPLY");
  const first = await watch(link, id);
  await expect(watch(link, id)).rejects.toMatchObject({ code: "terminal_in_use" });
  const second = await watch(link, id, null, true);
  await expect(first.terminal.ended).rejects.toMatchObject({ code: "taken_over" });
  await first.over;
  await second.type("x\r");
  await second.over;
  expect(second.text).toContain("got-x\r\n");
});

test("closing ends the whole session, including processes that ignore a hang-up", async () => {
  const id = await agent.open(link, "trap '' HUP TERM; (trap '' HUP; sleep 1000) & echo at-$!; wait; sleep 1000");
  const screen = await watch(link, id);
  await until("the command is running", () => /at-\d+/.test(screen.text));
  const child = /at-(\d+)/.exec(screen.text)?.[1];
  expect(await closeTerminal(link, id, true)).toMatchObject({ exit_code: null, signal: "SIGKILL" });
  await until("the child process has exited", () => !existsSync(`/proc/${child}`) || stateOf(Number(child)) === "Z");
  await expect(closeTerminal(link, id, true)).rejects.toMatchObject({ code: "terminal_not_found" });
});

test("a hang-up ends a shell that ignores it, while a background process that ignores it continues", async () => {
  const line = "trap '' HUP TERM; (trap '' HUP; exec sleep 1000) & echo at-$!; wait; sleep 1000";
  const id = await agent.open(link, line);
  const screen = await watch(link, id);
  await until("the command is running", () => /at-\d+/.test(screen.text));
  const child = Number(/at-(\d+)/.exec(screen.text)?.[1]);
  expect(await closeTerminal(link, id, false)).toMatchObject({ exit_code: null, signal: "SIGKILL", reason: "closed" });
  expect(stateOf(child)).toBe("S");
  process.kill(child, "SIGKILL");
});

test("a shell's end is the terminal's, even if another process holds it; all output is shown", async () => {
  const before = openFiles();
  const waitLoop = 'until [ "$(cut -d" " -f6 /proc/$!/stat)" = $! ]; do :; done';
  const line = `stty -opost; setsid sleep 1000 & ${waitLoop}; seq 1 100000; echo at-$!; exit 4`;
  const id = await agent.open(link, line);
  // No client reads at first, and then more than the permitted backlog has to arrive.
  await until("the terminal has output", async () => ((await listTerminals(link)).at(-1)?.offset ?? 0) > 0);
  const screen = await watch(link, id);
  expect(await screen.terminal.ended).toMatchObject({ exit_code: 4, reason: "exited" });
  await screen.over;
  const [, shown, child] = /^([\s\S]*)at-(\d+)\n$/.exec(screen.text) ?? [];
  expect(shown).toBe(Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join(""));
  expect(stateOf(Number(child))).toBe("S");
  process.kill(Number(child), "SIGKILL");
  await closeTerminal(link, id, true);
  await until("every descriptor is closed", () => openFiles() <= before);
});

test("a terminal without clients is hung up after its detached life, which restarts each time", async () => {
  const id = await agent.open(link, "sleep 1000", { detached_life_ms: 700 });
  const first = await watch(link, id);
  await Bun.sleep(1000);
  const stateNow = async () => (await listTerminals(link)).find((each) => each.terminal_id === id);
  expect((await stateNow())?.end).toBeNull();
  const detachedAt = Date.now();
  first.terminal.detach();
  const end = await until("the terminal has ended", async () => (await stateNow())?.end);
  expect(end).toMatchObject({ exit_code: null, signal: "SIGHUP", reason: "detached" });
  expect(end.ended_at_ms - detachedAt).toBeGreaterThanOrEqual(690);
  const never = await agent.open(link, "sleep 1000", { detached_life_ms: 300 });
  await until("the terminal without a client has ended", async () => {
    const states = await listTerminals(link);
    return states.find(({ terminal_id }) => terminal_id === never)?.end?.reason === "detached";
  });
});

test("a terminal that cannot be opened has a reason", async () => {
  const missing = await agent.open(link, null, { argv: ["no-such-program"] });
  const screen = await watch(link, missing);
  expect(await screen.terminal.ended).toMatchObject({ exit_code: 127 });
  await screen.over;
  expect(screen.text).toMatch(/^roomd: no-such-program: .+\r\n$/);
  const refused = (more: object) => agent.open(link, "true", more).then(() => null, refusalOf);
  expect(await refused({ cwd: "/no/such" })).toBe("cwd_not_found");
  expect(await refused({ user: "nobody-knows" })).toBe("user_not_found");
  for (const wrong of [
    { rows: 0 },
    { cols: 1001 },
    { rows: 1.5 },
    { argv: [] },
    { argv: ["a\0b"] },
    { terminal_id: "a/b" },
  ]) {
    expect([wrong, await refused(wrong)]).toEqual([wrong, "invalid_request"]);
  }
  await expect(watch(link, "none")).rejects.toMatchObject({ code: "terminal_not_found" });
  await expect(watch(link, missing, 10_000)).rejects.toMatchObject({ code: "invalid_request" });
});

test("sixteen live at most, and ended ones leave nothing open", async () => {
  const { link } = new TerminalFixture().connect();
  const before = openFiles();
  const ids = await Promise.all(Array.from({ length: 16 }, () => agent.open(link, "read -r")));
  await expect(agent.open(link, "true")).rejects.toMatchObject({ code: "too_many_streams" });
  await Promise.all(ids.map((id) => closeTerminal(link, id, true)));
  await until("every descriptor is closed", () => openFiles() <= before);
  const again = await agent.open(link, "exit 0");
  await (await watch(link, again)).over;
});
