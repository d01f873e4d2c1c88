/**
 * One viewer at a screen, from its first frame to the close: bytes of the guest's server in one direction, the viewer's permitted messages
 * in the other.
 *
 *     open ──▶ bytes both ways ──▶ end(why): close with its code; the screen continues
 */
import { MAX_SCREEN_FRAME_BYTES, SCREEN_CLOSE, type ScreenClose } from "../../../shared/api/screen.ts";
import type { DuplexSession, Peer } from "../../core/concurrency/duplex-session.ts";
import { WriteBuffer } from "../../core/concurrency/write-buffer.ts";
import type { GuestPort } from "../../host/guest-link/connect.ts";
import { Allowance } from "../../host/guest-link/pace.ts";
import { ClientFilter } from "./rfb/client-filter.ts";
import { MAX_CUT_TEXT_BYTES, RfbError } from "./rfb/limits.ts";

/** Limit of bytes that the guest has not read yet: a clipboard, and minutes of clicks. */
const MAX_WAITING_BYTES = 2 * MAX_CUT_TEXT_BYTES;
/** Mouse motion and picture requests total some hundred a second. */
const MESSAGES_PER_SECOND = 2048;
const MESSAGES_AT_ONCE = 8192;

export interface ViewEnd {
  /** `left`, or the reason of the close. */
  reason: "left" | ScreenClose;
  bytes_out: number;
  bytes_in: number;
}

export class Viewer implements DuplexSession {
  readonly mostBytes = MAX_SCREEN_FRAME_BYTES;
  readonly #port: GuestPort;
  readonly #filter: ClientFilter;
  readonly #backlog: WriteBuffer;
  readonly #over = Promise.withResolvers<ViewEnd>();
  readonly #allowance = new Allowance(MESSAGES_PER_SECOND, MESSAGES_AT_ONCE);
  #client: Peer | null = null;
  #isOver = false;
  /** Code and reason of its close. */
  #close: [code: number, reason: string] | null = null;
  #out = 0;
  #in = 0;

  constructor(port: GuestPort, drives: boolean) {
    this.#port = port;
    this.#filter = new ClientFilter(drives);
    this.#backlog = new WriteBuffer(port.write);
  }

  /** Resolves once it is over. */
  get over(): Promise<ViewEnd> {
    return this.#over.promise;
  }

  start(client: Peer): void {
    this.#client = client;
    // The session may have ended during the opening of the connection.
    if (this.#close) client.close(...this.#close);
    else void this.#show(client);
  }

  hear(): void {
    this.end("bad_message", "RFB must be in binary frames");
  }

  take(bytes: Uint8Array): void {
    if (this.#isOver) return;
    this.#in += bytes.byteLength;
    try {
      const before = this.#filter.messages;
      const passed = this.#filter.take(bytes);
      this.#allowance.spend(this.#filter.messages - before);
      if (this.#allowance.debtMs() > 0) {
        this.end("input_overflow", "too many messages from the viewer");
      } else if (this.#backlog.size + passed.byteLength > MAX_WAITING_BYTES) {
        this.end("input_overflow", "the guest reads too slowly");
      } else {
        this.#backlog.add(passed);
      }
    } catch (error) {
      if (!(error instanceof RfbError)) throw error;
      this.end("bad_message", error.message);
    }
  }

  left(): void {
    this.#settle("left");
  }

  /** Disconnects the viewer immediately. */
  end(why: ScreenClose, message: string): void {
    if (!this.#settle(why)) return;
    this.#close = [SCREEN_CLOSE[why], `${why}: ${message}`];
    this.#client?.close(...this.#close);
  }

  async #show(client: Peer): Promise<void> {
    try {
      for await (const bytes of this.#port.output) {
        if (this.#isOver) return;
        this.#out += bytes.byteLength;
        await client.send(bytes);
      }
      this.end("guest_unreachable", "the screen's server has ended the connection");
    } catch {
      this.end("guest_unreachable", "the guest's connection was lost");
    }
  }

  /** Ends the session; returns false if it was already over. */
  #settle(reason: ViewEnd["reason"]): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#port.close();
    this.#over.resolve({ reason, bytes_out: this.#out, bytes_in: this.#in });
    return true;
  }
}
