/**
 * Watching terminals of real guests: each watcher's view, through pauses and restarts, by session and by key, and that watching disturbs no
 * client.
 */
import { beforeAll, expect, test } from "vitest";
import { RealTerminal } from "../harness/clients/real-terminal.ts";
import { openTerminal, TerminalClient } from "../harness/clients/terminal-client.ts";
import { BINARY, type Json } from "../harness/daemon.ts";
import { until, withGuests } from "../harness/guests.ts";
import { People } from "../harness/people.ts";

withGuests("watching terminals", {}, (guests) => {
  const open = (line: string | null, more: object = {}) => openTerminal(guests.daemon, "w/sandboxes/a", line, more);
  const attach = (made: Json, options: Parameters<typeof TerminalClient.attach>[2] = {}) =>
    TerminalClient.attach(guests.daemon, made.ws_path, options);
  const pathOf = (made: Json, rest = "") => `/v1/rooms/w/sandboxes/a/terminals/${made.terminal_id}${rest}`;
  let people: People;

  beforeAll(async () => {
    await guests.daemon.room("w");
    await guests.daemon.sandbox("w", "a", guests.cid());
    people = await People.first(guests.daemon);
  });

  /** With a key if no other headers are given. */
  const watch = async (made: Json, after?: number, headers: Record<string, string> = {}) => {
    const query = after === undefined ? "" : `?after=${after}`;
    const by = "cookie" in headers ? headers : { authorization: `Bearer ${guests.daemon.apiKey}`, ...headers };
    return new Watcher(await fetch(`${guests.daemon.url}${pathOf(made, "/watch")}${query}`, { headers: by }));
  };

  test("a session of any role sees the input of the token's holder, and cannot change anything", async () => {
    const viewer = await people.member("viewer");
    const made = await open(null, { rows: 30, cols: 100 });
    const watcher = await watch(made, undefined, viewer.headers);
    expect(watcher.status).toBe(200);
    const client = await attach(made, { token: made.token });
    await client.shows("# ");
    client.type('echo se"e"n by all\r');
    await watcher.shows("seen by all\r\n");
    expect(watcher.told[0]).toMatchObject({ type: "watching", offset: 0, rows: 30, cols: 100, gap: 0 });
    client.say({ type: "resize", rows: 50, cols: 132 });
    await until("the watcher has the new size", () => watcher.told.some(({ rows }) => rows === 50));
    const typists = watcher.told.flatMap(({ type, typist }) => (type === "typist" ? [typist] : []));
    expect(typists).toEqual([{ name: expect.any(String), since: expect.any(String) }]);
    for (const [method, path, code] of [
      ["GET", pathOf(made, "/ws"), "hub_is_read_only"],
      ["POST", pathOf(made, "/token"), "hub_is_read_only"],
      ["DELETE", pathOf(made), "hub_is_read_only"],
    ] as const) {
      expect((await viewer.api(method, path, method === "POST" ? {} : undefined)).body.code).toBe(code);
    }
    expect((await viewer.api("GET", pathOf(made))).body).toMatchObject({ attached: true, rows: 50 });
    client.type("exit 7\r");
    await watcher.over;
    expect(watcher.told.at(-1)).toEqual({ type: "exit", exit_code: 7, signal: null });
    expect(watcher.bytes.equals(client.bytes)).toBe(true);
  });

  test("a page with a session cookie attaches with the token, which takes precedence", async () => {
    const made = await open("read -r x; echo got-$x");
    const protocols = `roomd.terminal, roomd.token.${made.token}`;
    const page = { ...people.owner.headers, origin: guests.daemon.url };
    const socket = new WebSocket(new URL(made.ws_path, guests.daemon.url.replace(/^http/, "ws")), {
      headers: { ...page, "sec-websocket-protocol": protocols },
    });
    const messages: string[] = [];
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      messages.push(typeof data === "string" ? data : Buffer.from(data as ArrayBuffer).toString());
    };
    const closed = new Promise<number>((resolve) => {
      socket.onclose = ({ code }) => resolve(code);
    });
    await until("the terminal is attached", () => messages.some((text) => text.includes('"attached"')));
    socket.send(Buffer.from("one\r"));
    await until("the client types", () => messages.join("").includes("got-one"));
    expect(await closed).toBe(1000);
    const other = await open("read -r");
    const first = await attach(other, { token: other.token });
    const watcher = await watch(other);
    const second = await attach(other, { token: other.token, takeover: true });
    expect(await first.closed).toMatchObject({ code: 4001 });
    second.drop();
    await until(
      "no client is the writer",
      () => watcher.told.at(-1)?.type === "typist" && watcher.told.at(-1)?.typist === null,
    );
    await guests.daemon.ok("DELETE", pathOf(other));
    await watcher.over;
    expect(watcher.told.at(-1)).toMatchObject({ type: "exit", exit_code: null });
  });

  test("a stalled watcher slows neither the command nor other watchers", async () => {
    const made = await open("stty -opost; read -r; seq 1 1000000; echo the-end");
    const deaf = await fetch(guests.daemon.url + pathOf(made, "/watch"), {
      headers: { authorization: `Bearer ${guests.daemon.apiKey}` },
    });
    const watcher = await watch(made);
    const client = await attach(made);
    client.type("\r");
    await client.shows("the-end\n", 60_000);
    await watcher.over;
    const missing = watcher.told.reduce((sum, { gap = 0 }) => sum + Number(gap), 0);
    expect(watcher.bytes.byteLength + missing).toBe(client.size);
    await deaf.body?.cancel();
  });

  test("a stalled session does not block a command, and ends with its person's session", async () => {
    const { daemon } = guests;
    const viewer = await people.member("viewer");
    const commands = "/v1/rooms/w/sandboxes/a/executions";
    const line = "read -r; head -c 60000000 /dev/zero; echo done >&2";
    await daemon.ok("POST", commands, { exec_id: "seen", command: line, timeout_ms: 100_000 });
    const stream = await fetch(`${daemon.url}${commands}/seen/stream`, { headers: viewer.headers });
    expect(stream.status).toBe(200);
    await daemon.ok("POST", `${commands}/seen/stdin`, { data_b64: "Cg==" });
    const isOver = async () => (await viewer.api("GET", `${commands}/seen`)).body.state === "exited";
    await until("the command has ended", isOver, 60_000);
    await stream.body?.cancel();
    const made = await open("read -r");
    const watcher = await watch(made, undefined, viewer.headers);
    await until("the watcher is attached", () => watcher.told.length > 0);
    await viewer.copy().send("/signout", {});
    await watcher.over;
    expect(watcher.told.at(-1)).toMatchObject({ type: "error", code: "session_ended" });
    await daemon.ok("DELETE", pathOf(made));
  });

  test("a watcher stays through pause and resume, and resumes with `after` after a restart", async () => {
    const { daemon } = guests;
    const made = await open("stty -opost -echo; echo up; while read -r x; do echo got-$x; done");
    const watcher = await watch(made);
    const say = async (text: string) => {
      const client = await attach(made, { takeover: true });
      client.type(`${text}\r`);
      await client.shows(`got-${text}\n`);
      client.drop();
      await client.closed;
    };
    await watcher.shows("up\n");
    await say("one");
    await watcher.shows("got-one\n");
    await daemon.ok("POST", "/v1/rooms/w/sandboxes/a/standby");
    await daemon.ok("POST", "/v1/rooms/w/sandboxes/a/resume");
    await say("two");
    await watcher.shows("got-two\n");
    await daemon.restart("SIGTERM");
    await watcher.over.catch(() => {});
    await say("three");
    const again = await watch(made, watcher.bytes.byteLength);
    await again.shows("got-three\n");
    expect(again.told[0]).toMatchObject({ type: "watching", offset: watcher.bytes.byteLength, gap: 0 });
    expect(`${watcher.text}${again.text}`).toBe("up\ngot-one\ngot-two\ngot-three\n");
    await daemon.sandbox("w", "b", guests.cid());
    const other = await openTerminal(daemon, "w/sandboxes/b", "read -r");
    const last = await fetch(`${daemon.url}/v1/rooms/w/sandboxes/b/terminals/${other.terminal_id}/watch`, {
      headers: { authorization: `Bearer ${daemon.apiKey}` },
    });
    const bereft = new Watcher(last);
    await until("the watcher is attached", () => bereft.told.length > 0);
    await daemon.ok("DELETE", "/v1/rooms/w/sandboxes/b");
    await bereft.over;
    expect(bereft.told.at(-1)).toMatchObject({ type: "error", code: "invalid_state", retryable: false });
    await daemon.ok("DELETE", pathOf(made));
  });

  test("roomd terminal watch and token, in a real terminal", async () => {
    const { daemon } = guests;
    const made = await open(null);
    const client = await attach(made);
    await client.shows("# ");
    const env = { PATH: process.env.PATH ?? "", HOME: "/tmp", ROOMD_URL: daemon.url, ROOMD_API_KEY: daemon.apiKey };
    const line = 'stty -g; echo --; "$@"; echo "status=$?"; stty -g; echo ==; read -r';
    await using terminal = new RealTerminal(
      ["/bin/bash", "-c", line, "bash", BINARY, "terminal", "watch", "w", "a"],
      env,
    );
    await terminal.shows("# ");
    client.type("printf 'a\\033]52;c;aGk=\\007\\033]0;title\\007\\033[c\\033[31mred'; echo; echo d\"on\"e\r");
    await terminal.shows("done");
    expect(terminal.text).toContain("a\x1b[31mred");
    for (const harmful of ["\x1b]52;c;aGk", "\x1b]0;title\x07", "\x1b[c"]) expect(terminal.text).not.toContain(harmful);
    terminal.type("no use\r\x03");
    await terminal.shows(/status=0\r\n[\s\S]*==\r\n$/);
    const { text } = terminal;
    terminal.type("\r");
    await terminal.ended;
    const [, before] = /^([\s\S]*?)--\r\n/.exec(text) ?? [];
    const [, after] = /status=0\r\n([\s\S]*?)==\r\n$/.exec(text) ?? [];
    expect(after).toBe(before);
    expect(client.text).not.toContain("no use");
    const { stdout } = await daemon.cli(["terminal", "token", "w", "a", "--json"]);
    const ticket = JSON.parse(stdout);
    expect(ticket).toMatchObject({
      terminal_id: made.terminal_id,
      token: expect.stringMatching(/^ttk_/),
      page: `${daemon.url}/rooms/w/agents/a/terminal?terminal=${made.terminal_id}`,
    });
    const typist = await attach(made, { token: ticket.token, takeover: true });
    typist.type("exit\r");
    await typist.closed;
  });

  test("a session that polls does not keep a sandbox from being idle", async () => {
    const { daemon } = guests;
    const viewer = await people.member("viewer");
    await daemon.sandbox("w", "looked-at", guests.cid(), { idle_timeout_seconds: 3 });
    const path = "/v1/rooms/w/sandboxes/looked-at";
    let looks = 0;
    const ended = await until(
      "the sandbox has ended",
      async () => {
        for (const kind of ["terminals", "executions"]) await viewer.api("GET", `${path}/${kind}`);
        looks++;
        const { items } = await daemon.ok("GET", "/v1/rooms/w/sandboxes?state=destroyed");
        return items.find((item: Json) => item.agent_id === "looked-at");
      },
      30_000,
    );
    expect(looks).toBeGreaterThan(2);
    expect(ended.exit.cause).toBe("idle");
  });
});

/** Reads the lines of a watch as they come. */
class Watcher {
  readonly status: number;
  readonly told: Json[] = [];
  /** Resolves when the stream has ended. */
  readonly over: Promise<void>;

  constructor(response: Response) {
    this.status = response.status;
    this.over = this.#read(response);
    this.over.catch(() => {});
  }

  get bytes(): Buffer {
    return Buffer.concat(this.told.flatMap(({ data_b64 }) => (data_b64 ? [Buffer.from(data_b64, "base64")] : [])));
  }

  get text(): string {
    return this.bytes.toString();
  }

  shows(text: string): Promise<unknown> {
    return until(`the watcher sees ${JSON.stringify(text)}`, () => this.text.includes(text), 30_000);
  }

  async #read(response: Response): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
      const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.told.push(JSON.parse(line));
    }
  }
}
