/**
 * The connection of `roomd shell` over time: counts the bytes that were shown, and re-attaches at that offset whenever the connection
 * breaks.
 *
 *   attach ──▶ attached ──exit frame──▶ exited
 *     ▲           │ └──~.──▶ left
 *     └── broken ─┘
 */
import { setTimeout as sleep } from "node:timers/promises";
import { TERMINAL_CLOSE, terminalAttach, terminalGet } from "../../../../shared/api/terminals.ts";
import { backoffMs } from "../../../../shared/backoff.ts";
import { CliError } from "../../kit/cli-error.ts";
import { call, sdk } from "../../kit/client.ts";
import { findConnection } from "../../kit/connection.ts";
import { openSocket } from "../../kit/web.ts";
import { KeyReader } from "./shell-keys.ts";
import type { LocalTerminal } from "./shell-local.ts";

/** WebSocket.OPEN, of any WebSocket. */
const OPEN = 1;
/** Lifetime of a terminal without a client. */
const GIVE_UP_MS = 10 * 60_000;
const RETRY_MS = { first: 100, most: 2_000 } as const;
/** Shorter interruptions are not reported. */
const TELL_AFTER_MS = 2_000;
const MAX_UNSENT_BYTES = 64 * 1024;
/** Refusals that time may cure. */
const PASSING: readonly string[] = ["guest_unreachable", "not_ready", "shutting_down", "rate_limited"];

export type Outcome = { kind: "left" } | { kind: "exited"; exit_code: number | null; signal: string | null };

type Frame =
  | { type: "attached"; offset: number; gap: number }
  | { type: "exit"; exit_code: number | null; signal: string | null };

interface TerminalAddress {
  room_id: string;
  sandbox: string;
  terminal_id: string;
}

export class ShellSession {
  readonly #place: TerminalAddress;
  readonly #local: LocalTerminal;
  readonly #keys = new KeyReader();
  readonly #over = Promise.withResolvers<Outcome>();
  #socket: WebSocket | null = null;
  #offset: number | null = null;
  #unsent: Uint8Array[] = [];
  #isOver = false;

  constructor(place: TerminalAddress, local: LocalTerminal) {
    this.#place = place;
    this.#local = local;
  }

  /**
   * Resolves to the outcome of the session; throws CliError if the session cannot continue. The local terminal is restored in both cases.
   */
  async run(): Promise<Outcome> {
    this.#local.open(
      (typed) => this.#type(typed),
      () => this.#say({ type: "resize", ...this.#local.size }),
    );
    try {
      this.#keepAttached().catch((error: unknown) => {
        this.#local.cutOff();
        this.#over.reject(error);
      });
      const outcome = await this.#over.promise;
      await this.#local.flush();
      return outcome;
    } finally {
      this.#isOver = true;
      this.#socket?.close();
      this.#local.close();
    }
  }

  async #keepAttached(): Promise<void> {
    let brokenAt: number | null = null;
    let attempt = 0;
    let isTold = false;
    while (!this.#isOver) {
      const { wasAttached, code, reason } = await this.#attachOnce();
      if (this.#isOver) return;
      if (FINAL_CLOSES.includes(code)) throw new CliError(`The terminal was closed: ${reason.replace(/^\w+: /, "")}.`);
      if (wasAttached || brokenAt === null) [brokenAt, attempt, isTold] = [performance.now(), 0, false];
      await this.#requireAlive();
      const brokenMs = performance.now() - brokenAt;
      if (brokenMs > GIVE_UP_MS)
        throw new CliError("The connection was lost and could not be restored for 10 minutes.");
      if (brokenMs > TELL_AFTER_MS && !isTold) {
        this.#local.note("the connection is lost, reconnecting; ~. leaves");
        isTold = true;
      }
      await sleep(backoffMs(RETRY_MS, attempt++));
    }
  }

  /** Attaches once and stays attached until the connection ends; resolves to the reason. */
  async #attachOnce(): Promise<{ wasAttached: boolean; code: number; reason: string }> {
    const { key, ca } = await findConnection();
    const input = { ...this.#place, takeover: "1", since: this.#offset ?? undefined };
    const url = sdk(terminalAttach).socketUrl("terminal_attach", input);
    const socket = openSocket(ca, url, { Authorization: `Bearer ${key}` });
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    let wasAttached = false;
    socket.onmessage = ({ data }) => {
      if (typeof data !== "string") return this.#show(new Uint8Array(data as ArrayBuffer));
      const frame = JSON.parse(data) as Frame;
      if (frame.type === "attached") {
        wasAttached = true;
        this.#begin(frame);
      } else if (frame.type === "exit") {
        this.#over.resolve({ kind: "exited", exit_code: frame.exit_code, signal: frame.signal });
      }
    };
    return await new Promise((resolve) => {
      socket.onclose = ({ code, reason }) => resolve({ wasAttached, code, reason });
    });
  }

  #begin({ offset, gap }: { offset: number; gap: number }): void {
    if (this.#offset !== null && gap > 0) this.#local.note(`${gap} bytes are no longer kept and are not shown`);
    this.#offset = offset;
    this.#say({ type: "resize", ...this.#local.size });
    for (const bytes of this.#unsent.splice(0)) this.#socket?.send(bytes);
  }

  #show(bytes: Uint8Array): void {
    this.#offset = (this.#offset ?? 0) + bytes.byteLength;
    this.#local.show(
      bytes,
      () => this.#say({ type: "flow", paused: true }),
      () => this.#say({ type: "flow", paused: false }),
    );
  }

  #type(typed: Uint8Array): void {
    const { bytes, command } = this.#keys.read(typed);
    if (bytes.byteLength > 0) this.#send(bytes);
    if (command === "help") this.#local.note("~. leaves, ~~ types a ~, ~? prints this");
    if (command !== "leave") return;
    this.#local.cutOff();
    this.#over.resolve({ kind: "left" });
  }

  /** Input typed while disconnected is buffered up to a limit, as in a terminal's own input buffer. */
  #send(bytes: Uint8Array): void {
    if (this.#isAttached) this.#socket?.send(bytes);
    else if (this.#unsent.reduce((sum, each) => sum + each.byteLength, 0) + bytes.byteLength <= MAX_UNSENT_BYTES) {
      this.#unsent.push(bytes);
    }
  }

  #say(frame: object): void {
    if (this.#isAttached) this.#socket?.send(JSON.stringify(frame));
  }

  get #isAttached(): boolean {
    return this.#socket?.readyState === OPEN;
  }

  /** Throws permanent errors: the terminal, the sandbox or the key is gone. */
  async #requireAlive(): Promise<void> {
    try {
      await call(terminalGet, this.#place);
    } catch (error) {
      const code = error instanceof CliError ? error.complaint.code : undefined;
      // Without a code there was no answer from a service.
      if (code !== undefined && !PASSING.includes(code)) throw error;
    }
  }
}

const FINAL_CLOSES: readonly number[] = [
  TERMINAL_CLOSE.bad_frame,
  TERMINAL_CLOSE.taken_over,
  TERMINAL_CLOSE.unauthorized,
  TERMINAL_CLOSE.sandbox_stopped,
  TERMINAL_CLOSE.input_overflow,
];
