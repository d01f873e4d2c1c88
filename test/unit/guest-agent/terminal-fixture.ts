/** Terminals without a guest: the agent's own on this host, over a link within this process. */

import type { GuestLink } from "../../../daemon/host/guest-link/handshake.ts";
import { type AttachedTerminal, attachTerminal, openTerminal } from "../../../daemon/host/guest-link/terminal.ts";
import type { Drive } from "../../../guest-agent/drive/drive.ts";
import type { Reaper } from "../../../guest-agent/reap.ts";
import { Terminals } from "../../../guest-agent/terminal/terminals.ts";
import { Link, type Stream, type Transport } from "../../../shared/agent-protocol/link.ts";
import type { TerminalOpenRequest } from "../../../shared/agent-protocol/messages.ts";

export class TerminalFixture {
  readonly #terminals = new Terminals({
    reaper: { spare: () => {} } as unknown as Reaper,
    drive: { holds: () => false } as unknown as Drive,
    env: () => ({}),
    takeCgroup: () => null,
  });
  readonly #unknown = new Set<string>();
  #made = 0;

  /** A connection to the same agent, as a daemon makes one. */
  connect(): { link: GuestLink; drop(): void } {
    const ends: { host: Link; guest: Link } = {} as never;
    // One turn later, as on a real connection; the sender's memory is its own again by then.
    const to = (end: "host" | "guest"): Transport => ({
      write: (bytes) => {
        const copy = new Uint8Array(bytes);
        setImmediate(() => ends[end].receive(copy));
        return undefined;
      },
      close: () => void setImmediate(() => ends[end].close("the peer has closed")),
    });
    const common = { onHandshake: () => {}, onClosed: () => {} };
    ends.host = new Link({ ...common, side: "host", transport: to("guest"), maxPeerStreams: 0, onOpen: () => {} });
    ends.guest = new Link({
      ...common,
      side: "guest",
      transport: to("host"),
      maxPeerStreams: 64,
      onOpen: (stream, request) => this.#serve(stream, request as { method: string }),
    });
    return { link: ends.host as unknown as GuestLink, drop: () => ends.host.close("dropped") };
  }

  /** Answers as an agent that was built before there was this method. */
  forget(method: string): void {
    this.#unknown.add(method);
  }

  /** Opens a terminal; returns its id. */
  async open(link: GuestLink, line: string | null, more: Partial<TerminalOpenRequest> = {}): Promise<string> {
    const terminal_id = `t${++this.#made}`;
    await openTerminal(link, {
      terminal_id,
      argv: line === null ? null : ["/bin/bash", "-c", line],
      cwd: "/",
      env: {},
      user: null,
      term: "xterm",
      rows: 24,
      cols: 80,
      ...more,
    });
    return terminal_id;
  }

  #serve(stream: Stream, request: { method: string }): void {
    if (this.#unknown.has(request.method)) {
      stream.fail("unknown_method", `no method ${request.method}`);
      return;
    }
    const methods: Record<string, (stream: Stream, request: object) => unknown> = {
      terminal_open: (...args) => this.#terminals.open(...args),
      terminal_attach: (...args) => this.#terminals.attach(...args),
      terminal_watch: (...args) => this.#terminals.watch(...args),
      terminal_list: (given) => this.#terminals.list(given),
      terminal_close: (...args) => this.#terminals.close(...args),
    };
    Promise.try(methods[request.method] ?? (() => {}), stream, request).catch((error: unknown) =>
      stream.fail("invalid_request", String(error)),
    );
  }
}

/** Attaches, and collects the output. */
export async function watch(link: GuestLink, terminal_id: string, since: number | null = null, takeover = false) {
  const terminal = await attachTerminal(link, { terminal_id, since, takeover });
  terminal.ended.catch(() => {});
  return new Screen(terminal);
}

export class Screen {
  readonly terminal: AttachedTerminal;
  readonly #chunks: Uint8Array[] = [];
  /** Resolves when nothing more will be shown. */
  readonly over: Promise<void>;

  constructor(terminal: AttachedTerminal) {
    this.terminal = terminal;
    this.over = this.#gather();
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get text(): string {
    return this.bytes.toString();
  }

  type(text: string | Uint8Array): Promise<void> {
    return this.terminal.write(Buffer.from(text));
  }

  async #gather(): Promise<void> {
    for await (const bytes of this.terminal.output) this.#chunks.push(bytes);
  }
}
