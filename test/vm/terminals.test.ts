/**
 * Terminals in real guests, over WebSocket: the shell's environment, resuming from an offset, backpressure, and disconnection of clients.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../daemon/core/fault-points.ts";
import { makeKey, run } from "../api/calls.ts";
import { openTerminal, TerminalClient } from "../harness/clients/terminal-client.ts";
import type { Json } from "../harness/daemon.ts";
import { undocumented } from "../harness/documented.ts";
import { LONG, shortOrLong, until, withGuests } from "../harness/guests.ts";

const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");
/** Every line once, numbered from 1. */
const numbered = (lines: number) => Array.from({ length: lines }, (_, index) => `${index + 1}\n`).join("");

withGuests("terminals", {}, (guests) => {
  const SANDBOX = "t/sandboxes/a";
  const open = (line: string | null, more: object = {}): Promise<Json> =>
    openTerminal(guests.daemon, SANDBOX, line, more);
  const attach = (made: Json, options: Parameters<typeof TerminalClient.attach>[2] = {}) =>
    TerminalClient.attach(guests.daemon, made.ws_path, options);
  const terminal = (made: Json, path = "") => `/v1/rooms/${SANDBOX}/terminals/${made.terminal_id}${path}`;

  beforeAll(async () => {
    await guests.daemon.room("t");
    await guests.daemon.sandbox("t", "a", guests.cid(), { env: { GREETING: "hello" } });
  });

  // Side by side, since one of them is five seconds of waiting.
  describe.concurrent("one terminal", () => {
    test("is a login shell, with a token: size, resize, ctrl-c, environment, exit code", async () => {
      const made = await open(null, { rows: 30, cols: 100, term: "vt100" });
      expect(made.terminal_id).toMatch(/^ter_/);
      expect(Date.parse(made.expires_at)).toBeGreaterThan(Date.now());
      const client = await attach(made, { token: made.token });
      expect(client.attached).toEqual({ type: "attached", offset: 0, rows: 30, cols: 100, gap: 0 });
      client.type("stty size; echo $TERM-$GREETING-$ROOMD_AGENT_ID; pwd\r");
      await client.shows("30 100\r\nvt100-hello-a\r\n/root\r\n");
      client.say({ type: "resize", rows: 50, cols: 132 });
      client.type("stty size\r");
      await client.shows("50 132\r\n");
      client.type("sh -c 'echo sleep-be\"\"gins; exec sleep 1000'\r");
      await client.shows("sleep-begins\r\n");
      client.type("\x03echo code-$?-\r");
      await client.shows(/code-130-\r\n[\s\S]*# $/);
      client.type("exit 7\r");
      expect(await client.closed).toMatchObject({ code: 1000 });
      expect(client.said.at(-1)).toEqual({ type: "exit", exit_code: 7, signal: null });
      expect(await guests.daemon.ok("GET", terminal(made))).toMatchObject({
        state: "ended",
        exit_code: 7,
        rows: 50,
        cols: 132,
        attached: false,
      });
    });

    test("runs another user's shell as that user, with their terminal and home", async () => {
      const made = await open(null, { user: "agent" });
      const client = await attach(made);
      client.type("id -un; pwd; stat -c %U $(tty); exit\r");
      expect((await client.closed).code).toBe(1000);
      expect(client.text).toContain("agent\r\n/home/agent\r\nagent\r\n");
    });

    test("passes every byte unchanged, both ways", async () => {
      const all = Uint8Array.from({ length: 256 * 256 }, (_, index) => index % 256);
      const client = await attach(await open(`stty raw -echo; echo ready; exec head -c ${all.byteLength}`));
      await client.shows("ready");
      client.type(all);
      expect((await client.closed).code).toBe(1000);
      expect(sha256(client.bytes.subarray(-all.byteLength))).toBe(sha256(all));
    });

    test("refuses a second client, or switches to it with takeover", async () => {
      const made = await open("read -r; echo got-$REPLY");
      const first = await attach(made);
      await expect(attach(made)).rejects.toThrow("not attached");
      const refused = await handshake(guests.daemon.url, made.ws_path, {
        authorization: `Bearer ${guests.daemon.apiKey}`,
      });
      expect(refused).toMatchObject({ status: 409, body: { code: "invalid_state" } });
      const second = await attach(made, { takeover: true, token: made.token });
      expect(await first.closed).toMatchObject({ code: 4001, reason: expect.stringContaining("taken_over") });
      second.type("it\r");
      expect((await second.closed).code).toBe(1000);
      expect(second.text).toContain("got-it\r\n");
    });

    test("survives invalid frames, which close their connection", async () => {
      const made = await open("read -r; echo got-$REPLY");
      for (const bad of ["{}", "no json", { type: "resize", rows: 0, cols: 10 }, { type: "exit", exit_code: 0 }]) {
        const client = await attach(made, { takeover: true });
        client.say(bad);
        expect([bad, (await client.closed).code]).toEqual([bad, 4000]);
      }
      const large = await attach(made, { takeover: true });
      large.type(new Uint8Array(1024 * 1024 + 1));
      await large.closed;
      expect((await guests.daemon.ok("GET", terminal(made))).state).toBe("running");
      await guests.daemon.ok("DELETE", terminal(made));
    });

    test("is opened by its token and no other, and never from the query", async () => {
      const { daemon } = guests;
      const [made, other] = await Promise.all([open("read -r"), open("read -r")]);
      const status = async (path: string, headers: Record<string, string>) =>
        (await handshake(daemon.url, path, headers)).status;
      const protocol = (token: string) => ({ "sec-websocket-protocol": `roomd.terminal, roomd.token.${token}` });
      expect(await status(made.ws_path, protocol(other.token))).toBe(401);
      expect(await status(made.ws_path, protocol(`${made.token}x`))).toBe(401);
      expect(await status(`${made.ws_path}?token=${made.token}`, {})).toBe(401);
      expect(await status(made.ws_path, { authorization: `Bearer ${made.token}` })).toBe(401);
      expect(await status(made.ws_path, { ...protocol(made.token), origin: "https://elsewhere.example" })).toBe(403);
      expect(await status(made.ws_path, { ...protocol(made.token), origin: daemon.url })).toBe(101);
      const again = await daemon.ok("POST", terminal(other, "/token"));
      expect(again.token).not.toBe(other.token);
      const client = await attach(other, { token: again.token });
      client.type("\r");
      expect((await client.closed).code).toBe(1000);
      await daemon.ok("DELETE", terminal(made));
    });

    test("has a full screen by WebSocket: vi, detached and resumed by offset, and top", async () => {
      const made = await open(null, { rows: 20, cols: 70 });
      const first = await attach(made);
      await first.shows("# ");
      first.type("vi /tmp/note\r");
      await first.shows(/1049h[\s\S]*\/tmp\/note/);
      first.type("iby WebSocket\x1b");
      await first.shows("by WebSocket");
      first.drop();
      await first.closed;
      // The daemon may not have heard yet that the first is gone.
      const second = await attach(made, { since: first.size, takeover: true });
      expect(second.attached).toMatchObject({ offset: first.size, gap: 0, rows: 20, cols: 70 });
      second.say({ type: "resize", rows: 33, cols: 99 });
      second.type(":wq\r");
      await second.shows("\x1b[?1049l");
      second.type("cat /tmp/note; stty size\r");
      await second.shows("by WebSocket\r\n33 99\r\n");
      second.type("top\r");
      await second.shows(/PID[\s\S]*roomd-agent|PID[\s\S]*top/);
      second.type("q");
      // It discards input typed before it had ended.
      await second.shows(/PID[\s\S]*# $/);
      second.type("exit\r");
      expect((await second.closed).code).toBe(1000);
      // The whole output, as a client that never left has seen it.
      const whole = await attach(made);
      expect((await whole.closed).code).toBe(1000);
      expect(sha256(whole.bytes)).toBe(sha256(Buffer.concat([first.bytes, second.bytes])));
    });

    test("keeps processes of an ended shell running, and ends them all with its DELETE", async () => {
      const { daemon } = guests;
      const alive = async (seconds: number) =>
        Number(await daemon.sh("t", "a", `pgrep -c -f -x 'sleep ${seconds}' || true`));
      const flee = (seconds: number) => `setsid sleep ${seconds} & (env -i setsid sleep ${seconds} &)`;
      const running = await open(`${flee(7001)}; nohup sleep 7001 >/dev/null 2>&1 & sleep 7001`);
      await until("all processes run", async () => (await alive(7001)) === 4);
      expect(await daemon.ok("DELETE", terminal(running))).toMatchObject({ state: "ended" });
      expect(await alive(7001)).toBe(0);

      const shell = await open(null);
      const client = await attach(shell);
      client.type(`${flee(7002)}; sleep 0.2; exit 3\r`);
      expect((await client.closed).code).toBe(1000);
      expect(client.said.at(-1)).toMatchObject({ exit_code: 3 });
      expect(await daemon.ok("GET", terminal(shell))).toMatchObject({ state: "ended", end_reason: "exited" });
      expect(await alive(7002)).toBe(2);
      await daemon.ok("DELETE", terminal(shell));
      expect(await alive(7002)).toBe(0);
    });
  });

  test("a client that resumes by offset sees the same bytes as one that stayed, across a kill of the daemon", async () => {
    const lines = 150_000;
    const made = await open(`stty -opost -echo; echo ready; read -r; seq 1 ${lines}; exit 3`);
    const pieces: Buffer[] = [];
    let offset = 0;
    for (let round = 0; ; round++) {
      const client = await attach(made, { since: offset, takeover: true });
      expect(client.attached).toMatchObject({ offset, gap: 0 });
      if (round === 0) {
        await client.shows("ready\n");
        client.type("\r");
      }
      const want = 20_000 * (round + 1);
      await Promise.race([until("part of the output has arrived", () => client.size >= want, 60_000), client.closed]);
      if (round === 2) {
        await guests.daemon.end("SIGKILL");
      } else {
        client.drop();
      }
      const { code } = await client.closed;
      pieces.push(client.bytes);
      offset += client.size;
      if (code === 1000) {
        expect(client.said.at(-1)).toEqual({ type: "exit", exit_code: 3, signal: null });
        break;
      }
      if (round === 2) await guests.daemon.serve();
    }
    // Three connections, the daemon's end, and the output after it.
    expect(pieces.length).toBeGreaterThanOrEqual(4);
    expect(sha256(Buffer.concat(pieces))).toBe(sha256(`ready\n${numbered(lines)}`));
    expect((await guests.daemon.ok("GET", terminal(made))).offset).toBe(offset);
  });

  test("a client that does not read makes the command wait, and does not make the daemon grow", async () => {
    const { daemon } = guests;
    const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${daemon.pid}/status`, "utf8"))?.[1]) * 1024;
    const made = await open("echo $$ >/tmp/yes.pid; exec yes");
    await until("the program writes", async () => (await daemon.ok("GET", terminal(made))).offset > 0);
    const before = rss();
    const deaf = await openDeaf(daemon.url, daemon.apiKey, made.ws_path);
    const used = () => daemon.sh("t", "a", "cut -d' ' -f14,15 /proc/$(cat /tmp/yes.pid)/stat");
    const shown = async () => (await daemon.ok("GET", terminal(made))).offset as number;
    let last = "";
    await until(
      "the program is stalled",
      async () => {
        const now = `${await used()} ${await shown()}`;
        const isStill = now === last;
        last = now;
        return isStill;
      },
      60_000,
    );
    await Bun.sleep(300);
    expect(`${await used()} ${await shown()}`).toBe(last);
    expect(rss() - before).toBeLessThan(64 * 1024 * 1024);
    console.log(`yes stalled after ${await shown()} bytes; the daemon grew by ${rss() - before} bytes`);
    // The guest still executes other commands.
    expect(await daemon.sh("t", "a", "echo alive")).toBe("alive");
    deaf.destroy();
    const stoodAt = await shown();
    await until("the program writes without a client", async () => (await shown()) > stoodAt + 256 * 1024, 60_000);
    const late = await attach(made, { since: 0 });
    expect(late.attached.gap).toBe(late.attached.offset);
    expect(late.attached.offset).toBeGreaterThan(0);
    expect(await daemon.ok("DELETE", terminal(made))).toMatchObject({ state: "ended", exit_code: null });
    expect((await late.closed).code).toBe(1000);
    expect(await daemon.problem("GET", terminal(made))).toMatchObject({ status: 404, code: "execution_not_found" });
  });

  test("a revoked key's clients are disconnected, by key and by token", async () => {
    const { daemon } = guests;
    const { key, key_id } = await makeKey(daemon, { scopes: ["terminal"] });
    const made = (
      await daemon.api(
        "POST",
        `/v1/rooms/${SANDBOX}/terminals`,
        { rows: 24, cols: 80 },
        { authorization: `Bearer ${key}` },
      )
    ).body;
    const client = await attach(made, { token: made.token });
    await run(daemon, "key", "revoke", key_id);
    expect(await client.closed).toMatchObject({ code: 4002, reason: expect.stringContaining("unauthorized") });
    await expect(attach(made, { token: made.token })).rejects.toThrow("not attached");
    await daemon.ok("DELETE", terminal(made));
  });

  test("standby, restart and delete disconnect clients with a reason; the terminal survives the first two", async () => {
    const { daemon } = guests;
    await daemon.sandbox("t", "b", guests.cid(), { lifecycle: { wake_on: [] } });
    const made = await openTerminal(daemon, "t/sandboxes/b", "while read -r x; do echo got-$x; done");
    const before = await attach(made);
    await daemon.ok("POST", "/v1/rooms/t/sandboxes/b/standby");
    expect(await before.closed).toMatchObject({ code: 4003, reason: expect.stringMatching(/paus/) });
    expect(await daemon.problem("GET", "/v1/rooms/t/sandboxes/b/terminals")).toMatchObject({ code: "invalid_state" });
    await daemon.ok("POST", "/v1/rooms/t/sandboxes/b/resume");
    const between = await attach(made);
    between.type("one\r");
    await between.shows("got-one\r\n");
    await daemon.restart("SIGTERM");
    expect((await between.closed).code).toBe(1001);
    const after = await attach(made, { since: between.size });
    after.type("two\r");
    await after.shows("got-two\r\n");
    await daemon.ok("DELETE", "/v1/rooms/t/sandboxes/b");
    expect(await after.closed).toMatchObject({ code: 4003, reason: expect.stringContaining("destroying") });
  });

  test("sixteen can be open; a failed open reports why; all are listed", async () => {
    const { daemon } = guests;
    const path = `/v1/rooms/${SANDBOX}/terminals`;
    const remove = (each: Json) => daemon.ok("DELETE", terminal(each));
    await Promise.all((await daemon.ok("GET", path)).items.map(remove));
    const made = await Promise.all(Array.from({ length: 16 }, () => open("read -r")));
    expect(await daemon.problem("POST", path, { rows: 1, cols: 1 })).toMatchObject({
      status: 429,
      code: "too_many_executions",
    });
    const { items } = await daemon.ok("GET", path);
    expect(items.map((item: Json) => item.terminal_id).sort()).toEqual(made.map((each) => each.terminal_id).sort());
    await Promise.all(made.map(remove));
    const wrong = async (more: object) => (await daemon.problem("POST", path, { rows: 24, cols: 80, ...more })).code;
    expect(await wrong({ cwd: "/no/such" })).toBe("cwd_not_found");
    expect(await wrong({ user: "nobody-knows" })).toBe("validation_failed");
    const missing = await attach(await open(null, { argv: ["no-such-program"] }));
    await missing.closed;
    expect(missing.said.at(-1)).toMatchObject({ exit_code: 127 });
    expect(missing.text).toMatch(/^roomd: no-such-program: .*\r\n$/);
  });

  test("a detached terminal is hung up after its lifetime, and its record has the reason", async () => {
    const { daemon } = guests;
    const seconds = shortOrLong("seconds of a detached terminal's life", 1, 600);
    // As shipped it is 10 minutes.
    if (!LONG) daemon.env.ROOMD_TERMINAL_DETACHED_LIFE = `${seconds}s`;
    await daemon.restart("SIGTERM");
    const made = await open("exec sleep 100000");
    const client = await attach(made);
    await Bun.sleep(seconds === 600 ? 0 : seconds * 1500);
    expect(await daemon.ok("GET", terminal(made))).toMatchObject({ state: "running", end_reason: null });
    const leftAt = Date.now();
    client.drop();
    const record = await until(
      "the terminal has ended",
      async () => {
        const now = await daemon.ok("GET", terminal(made));
        return now.state === "ended" && now;
      },
      (seconds + 60) * 1000,
    );
    expect(record).toMatchObject({ end_reason: "detached", attached: false });
    expect(Date.parse(record.ended_at) - leftAt).toBeGreaterThanOrEqual(seconds * 1000 - 100);
    expect(await daemon.sh("t", "a", "pgrep -c -f -x 'sleep 100000' || true")).toBe("0");
    await daemon.ok("DELETE", terminal(made));
    // From its next start on, which the next test makes.
    delete daemon.env.ROOMD_TERMINAL_DETACHED_LIFE;
  }, 800_000);

  test("a terminal opened as the daemon was killed is found by its Idempotency-Key, and not opened twice", async () => {
    const { daemon } = guests;
    const path = `/v1/rooms/${SANDBOX}/terminals`;
    const ids = async () => (await daemon.ok("GET", path)).items.map((item: Json) => item.terminal_id);
    const before = await ids();
    const call = () => daemon.api("POST", path, { rows: 24, cols: 80 }, { "idempotency-key": "opened" });
    // The terminal is open then, and the caller got no answer.
    daemon.env[FAULT_VARIABLE] = "audit.recorded=kill";
    await daemon.restart("SIGTERM");
    await expect(call()).rejects.toThrow();
    await until("the daemon has exited", () => !daemon.runs);
    delete daemon.env[FAULT_VARIABLE];
    await daemon.serve();
    const { status, body } = await call();
    expect(status).toBe(201);
    expect((await ids()).filter((id: string) => !before.includes(id))).toEqual([body.terminal_id]);
    const client = await attach(body, { token: body.token });
    client.type("exit 6\r");
    expect((await client.closed).code).toBe(1000);
    expect(client.said.at(-1)).toMatchObject({ exit_code: 6 });
  });

  test("the audit has the client and the number of bytes, and no content", async () => {
    const { daemon } = guests;
    const made = await open("read -r x; echo secret-$x");
    const client = await attach(made);
    client.type("word\r");
    await client.closed;
    const events = await until("the end is recorded", async () => {
      const { items } = await daemon.ok("GET", "/v1/rooms/t/audit?event=exec.terminal&limit=100&order=desc");
      const own = items.filter((item: Json) => item.details.terminal_id === made.terminal_id);
      return own.length >= 3 && own.reverse();
    });
    expect(events.map((item: Json) => item.event)).toEqual([
      "exec.terminal_opened",
      "exec.terminal_attached",
      "exec.terminal_detached",
    ]);
    expect(events[2].details).toEqual({
      terminal_id: made.terminal_id,
      reason: "exit",
      bytes_in: 5,
      bytes_out: client.size,
      exit_code: 0,
    });
    expect(JSON.stringify(events)).not.toContain("secret");
  });
});

/** A handshake as a program makes it: how it was answered. */
async function handshake(url: string, path: string, headers: Record<string, string>) {
  const response = await fetch(url + path, {
    headers: {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      ...headers,
    },
  });
  expect(undocumented("GET", response.url, response)).toEqual([]);
  const body: Json = response.status >= 400 ? await response.json() : null;
  return { status: response.status, body };
}

/** A client that attaches and never reads. */
async function openDeaf(url: string, key: string, path: string): Promise<Socket> {
  const { hostname, port, host } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.pause();
  socket.write(
    [
      `GET ${path} HTTP/1.1`,
      `Host: ${host}`,
      `Authorization: Bearer ${key}`,
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      "",
      "",
    ].join("\r\n"),
  );
  return socket;
}
