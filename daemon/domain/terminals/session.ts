/**
 * One client at a terminal, from its first frame to the close.
 *
 *     attached ──▶ bytes both ways, resize ──▶ exit, close 1000
 *                         └── end(why) ──────▶ close with its code; the terminal continues
 */

import {
  MAX_FRAME_BYTES,
  MAX_ROWS_OR_COLS,
  MAX_TYPED_BYTES,
  TERMINAL_CLOSE,
  type TerminalClose,
} from "../../../shared/api/terminals.ts";
import type { DuplexSession, Peer } from "../../core/concurrency/duplex-session.ts";
import { WriteBuffer } from "../../core/concurrency/write-buffer.ts";
import { parseJson } from "../../core/json.ts";
import { loopTime, type OwnerName, Pieces } from "../../core/loop/index.ts";
import { type AttachedTerminal, refusalOf } from "../../host/guest-link/terminal.ts";

const NORMAL_CLOSE = 1000;
const NO_FRAME = "a text frame must be a resize or a flow";
/** Limit of pending text frames, above which the client is disconnected. */
const MAX_HEARD = 4_096;
/** A resize or flow message takes about 50 characters; larger frames in the queue could take gigabytes. */
const MAX_TEXT_CHARACTERS = 1_024;

export interface SessionEnd {
  /** `exit`, `left`, or the reason of the close. */
  reason: string;
  bytes_out: number;
  bytes_in: number;
  exit_code: number | null;
}

export class Session implements DuplexSession {
  readonly mostBytes = MAX_FRAME_BYTES;
  readonly #terminal: AttachedTerminal;
  readonly #gap: number;
  readonly #typed: WriteBuffer;
  /** Text frames of the client that are not executed yet. */
  readonly #heard: string[] = [];
  #isCarryingOut = false;
  readonly #pieces: Pieces;
  readonly #over = Promise.withResolvers<SessionEnd>();
  #client: Peer | null = null;
  /** Code and reason of a close by the daemon. */
  #close: [code: number, reason: string] | null = null;
  #reason: string | null = null;
  /** Pending while the client has paused the output. */
  #flowing: PromiseWithResolvers<void> | null = null;
  #out = 0;
  #in = 0;

  /** `gap`: number of lost bytes before the first one; `owner` is charged for the client's frames. */
  constructor(terminal: AttachedTerminal, gap: number, owner: OwnerName) {
    this.#terminal = terminal;
    this.#pieces = new Pieces(loopTime, owner, "terminal");
    this.#gap = gap;
    this.#typed = new WriteBuffer(terminal.write);
    terminal.ended.catch(() => {});
  }

  /** Resolves once the client is no longer attached. */
  get over(): Promise<SessionEnd> {
    return this.#over.promise;
  }

  start(client: Peer): void {
    this.#client = client;
    // The session may have ended during the opening of the connection.
    if (this.#close) {
      client.close(...this.#close);
      return;
    }
    const { offset, rows, cols } = this.#terminal;
    client.say(JSON.stringify({ type: "attached", offset, rows, cols, gap: this.#gap }));
    void this.#show(client);
  }

  /** Disconnects the client immediately. */
  end(why: TerminalClose, message: string): void {
    if (this.#reason !== null) return;
    this.#settle(why, null);
    this.#close = [TERMINAL_CLOSE[why], `${why}: ${message}`];
    this.#client?.close(...this.#close);
  }

  hear(text: string): void {
    if (this.#reason !== null) return;
    if (text.length > MAX_TEXT_CHARACTERS) this.end("bad_frame", NO_FRAME);
    else if (this.#heard.push(text) > MAX_HEARD) this.end("input_overflow", "too many frames in a short time");
    else if (!this.#isCarryingOut) void this.#carryOut();
  }

  take(bytes: Uint8Array): void {
    if (this.#reason !== null) return;
    if (this.#typed.size + bytes.byteLength > MAX_TYPED_BYTES) {
      this.end("input_overflow", "the guest reads too slowly");
      return;
    }
    this.#in += bytes.byteLength;
    this.#typed.add(bytes);
  }

  left(): void {
    this.#settle("left", null);
  }

  /**
   * Processes text frames in pieces of the event loop: the first immediately, and in each later turn all frames that have arrived since.
   */
  async #carryOut(): Promise<void> {
    this.#isCarryingOut = true;
    for (let some = this.#heard.splice(0); some.length > 0; some = this.#heard.splice(0)) {
      /** The last of them counts. */
      let size: Resize | null = null;
      for (const text of some) {
        const turn = this.#pieces.next();
        if (turn) await turn;
        if (this.#reason !== null) return;
        const frame = parseFrame(text);
        if (frame === null) this.end("bad_frame", NO_FRAME);
        else if (frame.type === "resize") size = frame;
        else if (frame.paused) this.#flowing ??= Promise.withResolvers<void>();
        else this.#letFlow();
      }
      if (size && this.#reason === null) this.#terminal.resize(size.rows, size.cols);
      await this.#pieces.turn();
    }
    this.#isCarryingOut = false;
  }

  async #show(client: Peer): Promise<void> {
    try {
      for await (const bytes of this.#terminal.output) {
        if (this.#reason !== null) return;
        this.#out += bytes.byteLength;
        await client.send(bytes);
        await this.#flowing?.promise;
      }
      const { exit_code, signal } = await this.#terminal.ended;
      if (this.#reason !== null) return;
      // Before the close, which reports that the client has left.
      this.#settle("exit", exit_code);
      client.say(JSON.stringify({ type: "exit", exit_code, signal }));
      client.close(NORMAL_CLOSE, "exit");
    } catch (error) {
      if (refusalOf(error) === "taken_over") this.end("taken_over", "another client has taken over");
      else this.end("guest_unreachable", "the guest's connection was lost");
    }
  }

  #letFlow(): void {
    this.#flowing?.resolve();
    this.#flowing = null;
  }

  #settle(reason: string, exitCode: number | null): void {
    if (this.#reason !== null) return;
    this.#reason = reason;
    this.#letFlow();
    this.#terminal.detach();
    this.#over.resolve({ reason, bytes_out: this.#out, bytes_in: this.#in, exit_code: exitCode });
  }
}

interface Resize {
  type: "resize";
  rows: number;
  cols: number;
}
type Frame = Resize | { type: "flow"; paused: boolean };

function parseFrame(text: string): Frame | null {
  try {
    const { type, rows, cols, paused } = Object(parseJson(text)) as Record<string, unknown>;
    if (type === "flow") return typeof paused === "boolean" ? { type, paused } : null;
    return type === "resize" && isSize(rows) && isSize(cols) ? { type, rows, cols } : null;
  } catch {
    return null;
  }
}

function isSize(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MAX_ROWS_OR_COLS;
}
