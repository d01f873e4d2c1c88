/** A terminal of a sandbox: its output as it arrives, and input over a WebSocket. */
import { Calls } from "./calls.ts";
import type { Client, Result } from "./client.ts";
import { inTime, unlessAborted } from "./deadline.ts";
import { ConnectionError, RoomdError, UsageError } from "./errors.ts";
import type { SandboxName } from "./execution.ts";
import type { Terminal as TerminalRecord, TerminalTicket } from "./generated/schemas.ts";
import { type CallOptions, longestWaitOf } from "./transport.ts";

const PROTOCOL = "roomd.terminal";
/** Timeout for attaching. */
const ATTACH_MS = 30_000;
/** Close code of the service after the terminal's end; other codes have a reason. */
const ENDED = 1000;
/** Maximum of unread bytes, above which the service has to pause. */
const AHEAD_BYTES = 1024 * 1024;
const TOKEN_PREFIX = "roomd.token.";

/** A terminal that this program is attached to. */
export interface AttachedTerminal {
  /** Types into it. */
  write(data: string | Uint8Array): void;
  /** Changes its size. */
  resize(rows: number, cols: number): void;
  /** The terminal's output, until it ends or is closed. Throws ConnectionError if the connection breaks or another client takes over. */
  output: AsyncIterable<Uint8Array>;
  /** Detaches from the terminal, which keeps running. */
  close(): void;
}

/** A terminal of a sandbox. */
export class Terminal {
  /** Its id. */
  readonly id: string;
  readonly #client: Client;
  readonly #name: SandboxName & { terminal_id: string };

  /** References an existing terminal, by its id. No call is made. */
  constructor(client: Client, sandbox: SandboxName, id: string) {
    this.id = id;
    this.#client = client;
    this.#name = { ...sandbox, terminal_id: id };
  }

  /** Its record. */
  get(options: CallOptions = {}): Promise<TerminalRecord> {
    return this.#client.call("terminal_get", this.#name, options);
  }

  /** Yields the terminal's output from the oldest stored byte, without attaching. Lost connections are resumed. */
  watch(options: Pick<CallOptions, "signal"> = {}) {
    return this.#client.events("terminal_watch", this.#name, options);
  }

  /** A short-lived token for attaching, for a program without an API key. */
  token(options: CallOptions = {}): Promise<TerminalTicket> {
    return this.#client.call("terminal_token", this.#name, options);
  }

  /**
   * Attaches to the terminal, for typing; with `takeover` it replaces the attached client. Needs a WebSocket: Bun, or Node 22 or later,
   * which accepts certificates by NODE_EXTRA_CA_CERTS instead of `ca`.
   */
  async attach({ takeover = false, ...options }: CallOptions & { takeover?: boolean } = {}): Promise<AttachedTerminal> {
    if (typeof WebSocket === "undefined")
      throw new RoomdError("This runtime has no WebSocket: use Node 22 or later, or Bun.");
    const calls = new Calls(options);
    const { ws_path, token } = await this.token(calls.next());
    const url = new URL(this.#client.url.replace(/^http/, "ws") + ws_path);
    if (takeover) url.searchParams.set("takeover", "true");
    const socket = socketTo(url, [PROTOCOL, TOKEN_PREFIX + token], this.#client.ca);
    socket.binaryType = "arraybuffer";
    const { output, leave } = outputOf(socket);
    const send = (data: string | Uint8Array<ArrayBuffer>) => {
      // A WebSocket itself would not report an error.
      if (socket.readyState !== WebSocket.OPEN) throw new ConnectionError("The connection was closed.");
      socket.send(data);
    };
    const limits = { ...options, timeoutMs: longestWaitOf(options) === undefined ? ATTACH_MS : calls.leftMs };
    const failed = `The terminal ${this.id} could not be attached to`;
    try {
      await inTime(limits, `${failed} in time.`, ({ signal }) => unlessAborted(opened(socket, failed), signal));
    } catch (error) {
      socket.close();
      throw error;
    }
    return {
      write: (data) => send(typeof data === "string" ? new TextEncoder().encode(data) : new Uint8Array(data)),
      resize: (rows, cols) => send(JSON.stringify({ type: "resize", rows, cols })),
      output,
      close: leave,
    };
  }

  /** Ends the terminal and its processes. */
  end(options: CallOptions = {}): Promise<Result<"terminal_close">> {
    return this.#client.call("terminal_close", this.#name, options);
  }
}

/** Throws if this runtime's WebSocket does not support custom CA certificates. */
function socketTo(url: URL, protocols: string[], ca: string | null): WebSocket {
  if (ca === null || url.protocol === "ws:") return new WebSocket(url, protocols);
  if (process.versions.bun !== undefined) return new WebSocket(url, { protocols, tls: { ca } } as unknown as string[]);
  if (process.env.NODE_EXTRA_CA_CERTS) return new WebSocket(url, protocols);
  throw new UsageError(
    "Node's WebSocket trusts no certificates but the system's and those of NODE_EXTRA_CA_CERTS: set that.",
  );
}

/** Resolves once it is open. Rejects with the reason of a failure, as far as it is known. */
function opened(socket: WebSocket, failed: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Event) => reject(new ConnectionError(`${failed}.`, { cause }));
    socket.addEventListener("open", () => resolve(), { once: true });
    for (const ended of ["error", "close"]) socket.addEventListener(ended, fail, { once: true });
  });
}

/** Output from now on, buffered until it is read. */
function outputOf(socket: WebSocket): { output: AsyncIterable<Uint8Array>; leave(): void } {
  const waiting: Uint8Array[] = [];
  let wake = () => {};
  let isOpen = true;
  let isLeft = false;
  let wrong: ConnectionError | null = null;
  let unreadBytes = 0;
  let isPaused = false;
  const pause = (paused: boolean) => {
    isPaused = paused;
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: "flow", paused }));
  };
  socket.addEventListener("message", ({ data }) => {
    if (data instanceof ArrayBuffer) {
      waiting.push(new Uint8Array(data));
      unreadBytes += data.byteLength;
      if (unreadBytes > AHEAD_BYTES && !isPaused) pause(true);
    }
    wake();
  });
  socket.addEventListener("close", ({ code, reason }) => {
    isOpen = false;
    if (code !== ENDED && !isLeft)
      wrong = new ConnectionError(reason ? `The terminal was left: ${reason}.` : "The connection broke.");
    wake();
  });
  async function* read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      for (let bytes = waiting.shift(); bytes !== undefined; bytes = waiting.shift()) {
        unreadBytes -= bytes.byteLength;
        if (isPaused && unreadBytes <= AHEAD_BYTES / 2) pause(false);
        yield bytes;
      }
      if (wrong) throw wrong;
      if (!isOpen) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
  const leave = () => {
    isLeft = true;
    socket.close();
  };
  return { output: read(), leave };
}
