/**
 * Watching, on the agent's own terminals over a link within this process: the bytes that watchers see, backpressure between clients, and
 * the events about users.
 */
import { expect, test } from "vitest";
import type { Caller, EventsReply, KeyCall, StreamEvent } from "../../../../daemon/core/call/operation.ts";
import { NO_TRANSFER, trialCall } from "../../../../daemon/core/call/operation.ts";
import { openScreen } from "../../../../daemon/domain/ssh/screen.ts";
import type { SandboxAccess, TerminalDeps, TerminalTarget } from "../../../../daemon/domain/terminals/deps.ts";
import { makeTerminals } from "../../../../daemon/domain/terminals/index.ts";
import type { GuestLink } from "../../../../daemon/host/guest-link/handshake.ts";
import { closeTerminal, listTerminals } from "../../../../daemon/host/guest-link/terminal.ts";
import { MAX_WATCHERS, MAX_WATCHERS_OF_ORG } from "../../../../shared/api/terminals.ts";
import { until } from "../../../harness/guests.ts";
import { watch as attach, TerminalFixture } from "../../guest-agent/terminal-fixture.ts";

const SCREEN = { term: "xterm", rows: 24, cols: 80 };

type Told = Record<string, unknown> & { type: string };

/** A daemon's terminals of one sandbox, with its guest on this host. */
class Service {
  readonly agent = new TerminalFixture();
  readonly terminals;
  /** Number of watches started in the guest. */
  begun = 0;
  #connection = this.#connect();

  constructor() {
    const target = { room: {}, row: { sandbox_id: "sbx_a", agent_id: "a" } } as TerminalTarget;
    const sandboxes: Partial<SandboxAccess> = {
      find: () => target,
      withLink: (_target, work) => work(this.link),
      reach: async () => {
        this.#connection = this.#connect();
        return this.link;
      },
      use: (_id, work) => work(),
      stopped: () => new Promise(() => {}),
    };
    const deps = {
      sandboxes,
      log: { info: () => {}, error: () => {} },
      database: { commit: async () => {} },
      holdKey: () => () => {},
    } as unknown as TerminalDeps;
    this.terminals = makeTerminals(deps);
  }

  get link(): GuestLink {
    return this.#connection.link;
  }

  /** Loses the connection to the guest. */
  drop(): void {
    this.#connection.drop();
  }

  open = (line: string | null, more: object = {}) => this.agent.open(this.link, line, more);

  async ask(name: string, input: object, org = "org_1") {
    const bound = this.terminals.operations.find(({ operation }) => operation.name === name);
    const caller = { org_id: org, key_id: "kid_1", name: `key of ${org}` } as Caller;
    const gone = new AbortController();
    const call: KeyCall = { ...trialCall(caller), audit: { details: {} }, signal: gone.signal };
    const target = bound?.find(call, { sandbox: "a" });
    const transfer = { ...NO_TRANSFER, websocket: true };
    const done = await bound?.run(call, input, target, transfer);
    if (!done) throw new Error(`no operation ${name}`);
    return { done, gone };
  }

  async watch(terminal_id: string, after?: number, org?: string): Promise<Watcher> {
    const { done, gone } = await this.ask("terminal_watch", { terminal_id, after }, org);
    return new Watcher(done.events as EventsReply, gone);
  }

  #connect(): { link: GuestLink; drop(): void } {
    const { link, drop } = this.agent.connect();
    const open = link.open.bind(link);
    link.open = (request) => {
      if (request.method === "terminal_watch") this.begun++;
      return open(request);
    };
    return { link, drop };
  }
}

/** Reads on demand. */
class Watcher {
  readonly told: Told[] = [];
  readonly #reply: EventsReply;
  readonly #gone: AbortController;
  #next: Promise<IteratorResult<readonly StreamEvent[], void>> | null = null;

  constructor(reply: EventsReply, controller: AbortController) {
    this.#reply = reply;
    this.#gone = controller;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.told.flatMap(({ bytes }) => (bytes ? [bytes as Uint8Array] : [])));
  }

  get text(): string {
    return this.bytes.toString();
  }

  typesOf = () => this.told.map(({ type }) => type);

  /** Reads until it is so, or until the end; false at the end. */
  async until(isSo: () => unknown): Promise<boolean> {
    while (!isSo()) {
      this.#next ??= this.#reply.events.next();
      const { done, value } = await this.#next;
      this.#next = null;
      if (done) return false;
      for (const { data, data_b64: bytes } of value) this.told.push({ ...(data as Told), ...(bytes ? { bytes } : {}) });
    }
    return true;
  }

  toEnd = () => this.until(() => false);

  leave(): void {
    this.#gone.abort();
  }
}

const gathered = async (service: Service, id: string) => {
  const watcher = await service.watch(id);
  await watcher.toEnd();
  return watcher;
};

test("all watchers see every byte, from any start, through one subscription in the guest", async () => {
  const service = new Service();
  const id = await service.open("stty -opost; seq 1 20000; read -r; seq 1 20000; exit 3");
  const first = await service.watch(id);
  const others = await Promise.all(Array.from({ length: 9 }, () => service.watch(id)));
  await first.until(() => first.text.endsWith("20000\n"));
  const late = await service.watch(id);
  const screen = await attach(service.link, id);
  await screen.type("\r");
  const all = [first, late, ...others];
  await Promise.all(all.map((each) => each.toEnd()));
  await screen.over;
  for (const each of all) {
    expect(each.bytes.equals(screen.bytes)).toBe(true);
    expect(each.told[0]).toMatchObject({ type: "watching", offset: 0, rows: 24, cols: 80, gap: 0, typist: null });
    expect(each.told.at(-1)).toEqual({ type: "exit", exit_code: 3, signal: null });
  }
  expect(service.begun).toBe(1);
});

test("watching does not attach: no client is disconnected, none waits, and the detached life continues", async () => {
  const service = new Service();
  const id = await service.open("exec sleep 1000", { detached_life_ms: 400 });
  const watcher = await service.watch(id);
  expect((await listTerminals(service.link))[0]?.attached).toBe(false);
  await watcher.toEnd();
  expect(watcher.told.at(-1)).toEqual({ type: "exit", exit_code: null, signal: "SIGHUP" });
});

test("a watcher that does not read slows neither the command nor the writer, and learns how much it missed", async () => {
  const service = new Service();
  const id = await service.open("stty -opost -echo; echo up; read -r; seq 1 600000; read -r; echo end; exit 0");
  const idle = await service.watch(id);
  await idle.until(() => idle.text === "up\n");
  const screen = await attach(service.link, id);
  await screen.type("\r");
  const size = "up\n".length + Array.from({ length: 600_000 }, (_, at) => `${at + 1}\n`).join("").length;
  await until("the writer has received all output", () => screen.bytes.byteLength === size, 20_000);
  const quick = await service.watch(id, size - 7);
  await quick.until(() => quick.text === "600000\n");
  await screen.type("\r");
  await idle.toEnd();
  const lost = idle.told.filter(({ type }) => type === "lost");
  expect(lost).toHaveLength(1);
  const [{ offset, gap }] = lost as [{ offset: number; gap: number } & Told];
  // The remainder is a tail of the output, and the gap is reported to the byte.
  await screen.over;
  expect(idle.bytes.byteLength + gap).toBe(screen.bytes.byteLength);
  const before = offset - gap;
  expect(idle.bytes.equals(Buffer.concat([screen.bytes.subarray(0, before), screen.bytes.subarray(offset)]))).toBe(
    true,
  );
  expect(gap).toBeGreaterThan(1024 * 1024);
});

test("a watcher that resumes with after sees the missing bytes, and the number of those already dropped", async () => {
  const service = new Service();
  const id = await service.open("stty -opost; seq 1 400000; read -r");
  const all = Array.from({ length: 400_000 }, (_, at) => `${at + 1}\n`).join("");
  await until(
    "the terminal has printed all output",
    async () => (await listTerminals(service.link)).find((each) => each.terminal_id === id)?.offset === all.length,
  );
  const late = await service.watch(id, 100);
  await late.until(() => late.text.endsWith("400000\n"));
  const kept = all.length - 1024 * 1024;
  expect(late.told[0]).toMatchObject({ offset: kept, gap: kept - 100 });
  expect(late.text).toBe(all.slice(kept));
  const again = await service.watch(id, all.length - 3);
  await again.until(() => again.bytes.byteLength > 0);
  expect([again.told[0]?.gap, again.text]).toEqual([0, "00\n"]);
  await expect(service.watch(id, all.length + 1)).rejects.toMatchObject({
    code: "validation_failed",
    options: { errors: [{ field: "after", code: "out_of_range" }] },
  });
  await closeTerminal(service.link, id, true);
});

test("a lost connection does not affect a watcher: it resumes at its offset", async () => {
  const service = new Service();
  const id = await service.open("stty -opost -echo; echo up; while read -r; do seq 1 20000; echo done-$REPLY; done");
  const watcher = await service.watch(id);
  await watcher.until(() => watcher.text.includes("up\n"));
  const screen = await attach(service.agent.connect().link, id);
  for (let round = 1; round <= 10; round++) {
    await screen.type(`${round}\r`);
    const before = watcher.bytes.byteLength;
    await watcher.until(() => watcher.bytes.byteLength > before);
    service.drop();
    await watcher.until(() => watcher.text.includes(`done-${round}\n`));
    await until("the watch is resumed", () => service.begun === round + 1);
  }
  await until("the writer has received all output", () => screen.text.includes("done-10\n"));
  expect(watcher.bytes.equals(screen.bytes)).toBe(true);
  expect(watcher.typesOf().filter((type) => type === "lost")).toEqual([]);
  await closeTerminal(service.link, id, true);
});

test("a resize comes before the output for it, and is an event of its own", async () => {
  const service = new Service();
  const id = await service.open("trap 'echo now-$(stty size)' WINCH; echo up; while :; do read -t 0.05; done");
  const watcher = await service.watch(id);
  const screen = await attach(service.link, id);
  await watcher.until(() => watcher.text.includes("up"));
  screen.terminal.resize(50, 132);
  await watcher.until(() => watcher.text.includes("now-50 132"));
  const sized = watcher.told.findIndex(({ type }) => type === "resized");
  expect(watcher.told[sized]).toEqual({ type: "resized", rows: 50, cols: 132 });
  const text = (messages: Told[]) =>
    Buffer.concat(messages.flatMap(({ bytes }) => (bytes ? [bytes as Uint8Array] : []))).toString();
  expect(text(watcher.told.slice(0, sized))).not.toContain("now-");
  // A later watcher sees the first size with the first bytes.
  const late = await service.watch(id);
  await late.until(() => late.text.includes("now-50 132"));
  expect(late.told[0]).toMatchObject({ rows: 24, cols: 80 });
  await closeTerminal(service.link, id, true);
  const silent = await service.open("exec sleep 1000");
  const other = await service.watch(silent);
  const typing = await attach(service.link, silent);
  typing.terminal.resize(33, 99);
  await other.until(() => other.told.some(({ rows }) => rows === 33));
  await closeTerminal(service.link, silent, true);
});

test("writers are reported by name when they attach, are taken over and leave", async () => {
  const service = new Service();
  const id = await service.open("read -r; read -r");
  const watcher = await service.watch(id);
  await watcher.until(() => watcher.told.length > 0);
  const sit = async (org: string, takeover: boolean) => {
    const { done } = await service.ask("terminal_attach", { terminal_id: id, takeover }, org);
    const closed = Promise.withResolvers<number>();
    done.conversation?.start({ say: () => {}, send: async () => {}, close: (code) => closed.resolve(code) });
    return { conversation: done.conversation, closed: closed.promise };
  };
  const typists = () => watcher.told.flatMap((each) => ("typist" in each ? [each.typist] : []));
  const first = await sit("org_1", false);
  await watcher.until(() => typists().length === 2);
  const joining = await service.watch(id);
  await joining.until(() => joining.told.length > 0);
  const second = await sit("org_2", true);
  expect(await first.closed).toBe(4001);
  await watcher.until(() => typists().length === 3);
  second.conversation?.left();
  await watcher.until(() => typists().length === 4);
  const since = expect.stringMatching(/^\d{4}-.*Z$/);
  expect(typists()).toEqual([null, { name: "key of org_1", since }, { name: "key of org_2", since }, null]);
  expect(joining.told[0]?.typist).toEqual({ name: "key of org_1", since });
  await closeTerminal(service.link, id, true);
});

test("a writer over SSH is reported as well", async () => {
  const service = new Service();
  const seated = Promise.withResolvers<string>();
  const screen = await openScreen(service.link, ["/bin/sh", "-c", "read -r x"], {}, SCREEN, (id) => {
    seated.resolve(id);
    return service.terminals.sit("sbx_a", id, "ada");
  });
  const id = await seated.promise;
  const watcher = await service.watch(id);
  await watcher.until(() => watcher.told.length > 0);
  expect(watcher.told[0]?.typist).toMatchObject({ name: "ada" });
  screen.hangUp();
  await watcher.until(() => watcher.told.at(-1)?.type !== "watching");
  expect(watcher.told.at(-1)).toEqual({ type: "typist", typist: null });
});

test("the last watcher to leave ends the subscription, and slots are released", async () => {
  const service = new Service();
  const id = await service.open("read -r");
  const watchers = await Promise.all(Array.from({ length: MAX_WATCHERS }, () => service.watch(id)));
  const full = { code: "too_many_executions" };
  await expect(service.watch(id)).rejects.toMatchObject(full);
  watchers[0]?.leave();
  watchers.push(await service.watch(id));
  expect(service.begun).toBe(1);
  for (const each of watchers) each.leave();
  for (const each of watchers) expect([await each.toEnd(), each.told.at(-1)?.type]).toEqual([false, "error"]);
  const again = await service.watch(id);
  await again.until(() => again.told.length > 0);
  expect(service.begun).toBe(2);
  again.leave();
  const ids = await Promise.all(
    Array.from({ length: Math.ceil(MAX_WATCHERS_OF_ORG / MAX_WATCHERS) }, () => service.open("read -r")),
  );
  const seats = await Promise.all(
    Array.from({ length: MAX_WATCHERS_OF_ORG }, (_, at) => service.watch(String(ids[Math.floor(at / MAX_WATCHERS)]))),
  );
  await expect(service.watch(id)).rejects.toMatchObject(full);
  await expect(service.watch(id, 0, "org_2").then((seat) => seat.leave())).resolves.toBeUndefined();
  for (const each of seats) each.leave();
  for (const each of [id, ...ids]) await closeTerminal(service.link, each, true);
});

test("a refused watch has a reason, and the end of the service ends all watchers", async () => {
  const service = new Service();
  await expect(service.watch("none")).rejects.toMatchObject({ code: "execution_not_found" });
  const id = await service.open("read -r");
  const watcher = await service.watch(id);
  await watcher.until(() => watcher.told.length > 0);
  service.terminals.stop();
  await watcher.toEnd();
  expect(watcher.told.at(-1)).toMatchObject({ type: "error", code: "shutting_down", retryable: true });
  await closeTerminal(service.link, id, true);
  const old = new Service();
  old.agent.forget("terminal_watch");
  await expect(old.watch(await old.open("exit 0"))).rejects.toMatchObject({
    code: "guest_unreachable",
    cause: { code: "unknown_method" },
  });
});

test("an ended terminal is shown to its end, repeatedly", async () => {
  const service = new Service();
  const id = await service.open("echo last words; exit 5");
  const [first, second] = [await gathered(service, id), await gathered(service, id)];
  for (const each of [first, second]) {
    expect(each.text).toBe("last words\r\n");
    expect(each.told.at(-1)).toEqual({ type: "exit", exit_code: 5, signal: null });
  }
});
