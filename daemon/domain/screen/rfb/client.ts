/**
 * RFB client of a screen: its current frame, and keyboard and pointer input.
 *
 *     open ──▶ full update requested ──▶ whole ◀──▶ a new size: full update requested again
 *       └────────────┴─────────────┴── over, with the reason
 *
 * Updates arrive only on request: without requests, a screen that changes all the time costs nothing.
 */

import { monotonicMs, sleep } from "../../../core/clock.ts";
import { Published, within } from "../../../core/concurrency/published.ts";
import type { OwnerName } from "../../../core/loop/index.ts";
import { ByteReader } from "./byte-reader.ts";
import { Decoder, type Hold } from "./decode.ts";
import { type Frame, wholeOf } from "./frame.ts";
import { shakeHands } from "./handshake.ts";
import { type Allowances, freshAllowances, MAX_UNWRITTEN_BYTES, RfbError } from "./limits.ts";
import {
  Encoding,
  EXTENDED_CLIPBOARD,
  keyEvent,
  pointerEvent,
  setEncodings,
  setPixelFormat,
  takeNoClipboard,
  updateRequest,
} from "./messages.ts";

/** A busy guest without KVM takes seconds. */
const ANSWER_MS = 15_000;
/** A screen without an update for this long is still. A text cursor blinks more slowly. */
export const STILL_MS = 150;
/** Time after which a picture is taken even if the screen is not still. */
export const MAX_STILL_MS = 3_000;
/** Minimum interval of update requests, to leave time for other work. */
const BETWEEN_UPDATES_MS = 40;

/** Pixels of the first row that are requested in turn. */
const AWAITED_PIXELS = 64;

/** Transport of the bytes. */
export interface Wire {
  output: AsyncIterable<Uint8Array>;
  /** Resolves once the bytes are handed to the transport. */
  write(bytes: Uint8Array): Promise<void>;
  close(): void;
}

interface Means {
  hold: Hold;
  allowances: Allowances;
  /** Pays for reading. */
  owner: OwnerName;
  /** Time limit of a server response. */
  answerMs: number;
}

interface Progress {
  /** Updates that drew something. */
  changes: number;
  /** Updates that drew the requested pixel. */
  answers: number;
  /** Pixels of this frame drawn so far. */
  drawn: number;
  over: Error | null;
}

export class RfbClient {
  readonly #wire: Wire;
  readonly #answerMs: number;
  readonly #decoder: Decoder;
  readonly #progress = new Published<Progress>({ changes: 0, answers: 0, drawn: 0, over: null });
  #isAsked = false;
  #askedAt = 0;
  /** Number of calls that wait for a response. */
  #waiting = 0;
  #unwritten: Uint8Array[] = [];
  #unwrittenBytes = 0;
  /** Settles once all data is handed to the transport; null if it already is. */
  #writing: Promise<void> | null = null;
  #pointer: { x: number; y: number };
  #buttons = 0;
  /** Resolves with the reason once the connection is over; never rejects. */
  readonly over: Promise<Error>;
  readonly #ended = new AbortController();

  private constructor(wire: Wire, decoder: Decoder, answerMs: number) {
    this.#wire = wire;
    this.#answerMs = answerMs;
    this.#decoder = decoder;
    const { width, height } = decoder.frame;
    this.#pointer = { x: width >> 1, y: height >> 1 };
    this.over = this.#follow();
  }

  /** Throws RfbError, DeadlineError, and errors of the wire or of `hold`; the wire is closed then. */
  static async open(
    wire: Wire,
    {
      hold = () => () => {},
      allowances = freshAllowances(),
      owner = "host",
      answerMs = ANSWER_MS,
    }: Partial<Means> = {},
  ): Promise<RfbClient> {
    try {
      const reader = new ByteReader(wire.output, allowances.reads, owner);
      const size = await within(
        shakeHands(reader, (bytes) => wire.write(bytes)),
        answerMs,
        "the screen's handshake",
      );
      const client = new RfbClient(wire, new Decoder(reader, size, { hold, sizes: allowances.sizes }), answerMs);
      const encodings = setEncodings([...Object.values(Encoding), EXTENDED_CLIPBOARD]);
      client.#send(setPixelFormat(), encodings, takeNoClipboard());
      client.#askForAll();
      return client;
    } catch (error) {
      wire.close();
      throw error;
    }
  }

  /** Aborts with the reason when the connection ends. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Throws the reason after the end of the connection. */
  get frame(): Frame {
    this.ended.throwIfAborted();
    return this.#decoder.frame;
  }

  /** Position of the pointer: as reported by the server, else as last set. */
  get pointer(): { x: number; y: number } {
    const { width, height } = this.frame;
    const { x, y } = this.#decoder.pointer ?? this.#pointer;
    return { x: Math.min(x, width - 1), y: Math.min(y, height - 1) };
  }

  get buttons(): number {
    return this.#buttons;
  }

  /** `buttons` are all buttons that are pressed from then on. */
  point(x: number, y: number, buttons: number): void {
    this.#pointer = { x, y };
    this.#buttons = buttons;
    this.#send(pointerEvent(x, y, buttons));
  }

  key(keysym: number, isDown: boolean): void {
    this.#send(keyEvent(keysym, isDown));
  }

  /**
   * Resolves once the server has processed all earlier input, and the frame is whole and at least as recent. Throws RfbError,
   * DeadlineError.
   */
  async current(signal?: AbortSignal): Promise<void> {
    const { answers } = this.#progress.value;
    this.#askForAnswer();
    this.#waiting++;
    try {
      await this.#until((now) => now.answers > answers && this.#isWhole, this.#answerMs, signal);
    } catch (error) {
      // The next call reconnects.
      if (!signal?.aborted) this.#fail(error);
      throw error;
    } finally {
      this.#waiting--;
    }
  }

  /** Resolves once the screen has not changed for STILL_MS, or after MAX_STILL_MS. Throws the errors of `current`. */
  async still(signal?: AbortSignal): Promise<void> {
    await this.current(signal);
    for (const end = monotonicMs() + MAX_STILL_MS; monotonicMs() < end; ) {
      const { changes } = this.#progress.value;
      this.#ask();
      const changed = this.#until((now) => now.changes > changes, STILL_MS, signal);
      const isStill = await changed.then(
        () => false,
        (error: unknown) => {
          signal?.throwIfAborted();
          if (this.#progress.value.over) throw error;
          return true;
        },
      );
      if (isStill) break;
      await sleep(Math.max(0, this.#askedAt + BETWEEN_UPDATES_MS - monotonicMs()));
    }
    // A new size that arrived in the meantime has to be drawn.
    await this.#until(() => this.#isWhole, this.#answerMs, signal);
  }

  close(reason: Error): void {
    if (this.#progress.value.over) return;
    this.#progress.set({ ...this.#progress.value, over: reason });
    this.#ended.abort(reason);
    this.#unwritten = [];
    this.#decoder.close();
    this.#wire.close();
  }

  async #until(isSo: (now: Progress) => boolean, deadlineMs: number, signal?: AbortSignal): Promise<void> {
    const { over } = await this.#progress.until((now) => now.over !== null || isSo(now), deadlineMs, signal);
    if (over) throw over;
  }

  /** Whether the whole frame was drawn. */
  get #isWhole(): boolean {
    const { width, height } = this.frame;
    return this.#progress.value.drawn >= width * height;
  }

  #ask(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    this.#askedAt = monotonicMs();
    this.#send(updateRequest(true, wholeOf(this.frame)));
  }

  #askForAll(): void {
    this.#isAsked = true;
    this.#send(updateRequest(false, wholeOf(this.frame)));
  }

  /**
   * Requests one pixel, which the server sends even if unchanged, together with all changes. Each request is for another pixel, so that a
   * late response is not taken for this one. An update in transit that draws the pixel is taken for it; the picture is then a moment old.
   */
  #askForAnswer(): void {
    this.#decoder.awaited = (this.#decoder.awaited + 1) % Math.min(this.frame.width, AWAITED_PIXELS);
    this.#isAsked = true;
    this.#askedAt = monotonicMs();
    this.#send(updateRequest(true, wholeOf(this.frame)));
    this.#send(updateRequest(false, { x: this.#decoder.awaited, y: 0, width: 1, height: 1 }));
  }

  /** Sends in order; a failed write closes the connection, and so does a server that does not read. */
  #send(...messages: Uint8Array[]): void {
    if (this.#progress.value.over) return;
    for (const message of messages) this.#unwrittenBytes += message.byteLength;
    if (this.#unwrittenBytes > MAX_UNWRITTEN_BYTES) {
      this.#fail(new RfbError("the server does not read its input"));
      return;
    }
    this.#unwritten.push(...messages);
    this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    try {
      while (this.#unwritten.length > 0) {
        const bytes = Buffer.concat(this.#unwritten.splice(0));
        await this.#wire.write(bytes);
        this.#unwrittenBytes -= bytes.byteLength;
      }
    } catch (error) {
      this.#fail(error);
    }
    this.#writing = null;
  }

  #fail(error: unknown): void {
    this.close(error instanceof Error ? error : new RfbError(String(error)));
  }

  async #follow(): Promise<Error> {
    try {
      while (!this.#progress.value.over) {
        const { drawn, hasAwaited, isNewFrame } = await this.#decoder.next();
        const before = this.#progress.value;
        this.#isAsked = false;
        this.#progress.set({
          ...before,
          changes: before.changes + (drawn > 0 || isNewFrame ? 1 : 0),
          answers: before.answers + (hasAwaited ? 1 : 0),
          drawn: (isNewFrame ? 0 : before.drawn) + drawn,
        });
        // No further requests to a server that does not read: they would pile up here.
        if (this.#writing) await this.#writing;
        // Xvnc counts an update without pixels as an answer too, and forgets the request.
        if (!this.#isWhole) this.#askForAll();
        else if (drawn === 0 && this.#waiting > 0) this.#askForAnswer();
      }
    } catch (error) {
      this.#fail(error);
    }
    return this.#progress.value.over ?? new RfbError("the connection ended");
  }
}
