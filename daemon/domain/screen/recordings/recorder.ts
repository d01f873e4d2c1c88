/**
 * One recording in progress: a separate connection to the screen, polled for changes some times a second, with each update stored with its
 * time.
 *
 *     open ──▶ requested ──▶ update: stored ──▶ requested again after a pause
 *       └────────┴──────────────┴── over, with the reason
 */

import type { FileHandle } from "node:fs/promises";
import { pieceHeader, RECORDED } from "../../../../shared/agent-protocol/recording.ts";
import { MAX_RECORDING_BYTES, RECORDED_PER_SECOND, type RecordingEnd } from "../../../../shared/api/recordings.ts";
import { monotonicMs, sleep, startTimer, stopTimer } from "../../../core/clock.ts";
import { within } from "../../../core/concurrency/published.ts";
import type { OwnerName } from "../../../core/loop/index.ts";
import { errnoOf } from "../../../core/service-error.ts";
import type { Allowance } from "../../../host/guest-link/pace.ts";
import { ByteReader } from "../rfb/byte-reader.ts";
import type { Wire } from "../rfb/client.ts";
import { shakeHands } from "../rfb/handshake.ts";
import { serverInit, setEncodings, setPixelFormat, updateRequest } from "../rfb/messages.ts";
import { Updates } from "../rfb/updates.ts";

const HANDSHAKE_MS = 15_000;
const BETWEEN_MS = 1000 / RECORDED_PER_SECOND;

/** Dependencies of a recorder. */
interface Means {
  hasSpace(): boolean;
  /** Budget of event-loop time for reading, shared by all of the organization. */
  reads: Allowance;
  /** Pays for reading. */
  owner: OwnerName;
  mostMs: number;
  mostBytes?: number;
}

export class Recorder {
  readonly #wire: Wire;
  readonly #updates: Updates;
  readonly #file: FileHandle;
  readonly #means: Means;
  readonly #startedAt = monotonicMs();
  readonly #stopped = Promise.withResolvers<RecordingEnd>();
  readonly #timer: Timer;
  #size: { width: number; height: number };
  width: number;
  height: number;
  size_bytes = 0;
  #isOver = false;
  /** Resolves with the reason once the recording is written completely and its file closed; never rejects. */
  readonly over: Promise<RecordingEnd>;

  private constructor(
    { wire, updates, size }: { wire: Wire; updates: Updates; size: { width: number; height: number } },
    file: FileHandle,
    means: Means,
  ) {
    this.#wire = wire;
    this.#updates = updates;
    this.#file = file;
    this.#means = means;
    this.#size = size;
    this.width = size.width;
    this.height = size.height;
    this.#timer = startTimer(() => this.end("time_up"), means.mostMs);
    this.over = this.#record();
  }

  /** Performs the handshake, and only then calls `makeFile`. Throws RfbError, DeadlineError, and errors of the wire and of `makeFile`. */
  static async open(
    wire: Wire,
    makeFile: (size: { width: number; height: number }) => Promise<FileHandle>,
    means: Means,
  ): Promise<Recorder> {
    try {
      const reader = new ByteReader(wire.output, means.reads, means.owner);
      const write = (bytes: Uint8Array) => wire.write(bytes);
      const size = await within(shakeHands(reader, write), HANDSHAKE_MS, "the screen's handshake");
      const file = await makeFile(size);
      return new Recorder({ wire, updates: new Updates(reader), size }, file, means);
    } catch (error) {
      wire.close();
      throw error;
    }
  }

  get duration_ms(): number {
    return Math.round(monotonicMs() - this.#startedAt);
  }

  end(reason: RecordingEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopped.resolve(reason);
    // Aborts a pending read.
    this.#wire.close();
  }

  async #record(): Promise<RecordingEnd> {
    const failed = this.#keep().catch((error: unknown) =>
      this.end(["ENOSPC", "EDQUOT", "EIO"].includes(errnoOf(error) ?? "") ? "disk_full" : "screen_lost"),
    );
    const reason = await this.#stopped.promise;
    stopTimer(this.#timer);
    await failed;
    // Flushed to disk, like its metadata.
    await this.#file.sync().catch(() => {});
    await this.#file.close().catch(() => {});
    return reason;
  }

  async #keep(): Promise<void> {
    await this.#write(0, [serverInit(this.#size)]);
    await this.#wire.write(Buffer.concat([setPixelFormat(), setEncodings(Object.values(RECORDED)), this.#ask(false)]));
    while (!this.#isOver) {
      const askedAt = monotonicMs();
      const { parts, isEmpty, size } = await this.#updates.next();
      if (size) this.#resize(size);
      if (!isEmpty) await this.#write(this.duration_ms, parts);
      if (this.#isOver) return;
      await sleep(Math.max(0, askedAt + BETWEEN_MS - monotonicMs()));
      // After a change of size, requests a full update: the new frame is empty.
      await this.#wire.write(this.#ask(size === null));
    }
  }

  #ask(incremental: boolean): Buffer {
    return updateRequest(incremental, { x: 0, y: 0, ...this.#size });
  }

  #resize(size: { width: number; height: number }): void {
    this.#size = size;
    this.width = Math.max(this.width, size.width);
    this.height = Math.max(this.height, size.height);
  }

  async #write(ms: number, parts: readonly Buffer[]): Promise<void> {
    const length = parts.reduce((sum, part) => sum + part.byteLength, 0);
    const piece = Buffer.concat([pieceHeader(ms, length), ...parts]);
    if (this.size_bytes + piece.byteLength > (this.#means.mostBytes ?? MAX_RECORDING_BYTES))
      return this.end("too_large");
    if (!this.#means.hasSpace()) return this.end("disk_full");
    await this.#file.appendFile(piece);
    this.size_bytes += piece.byteLength;
  }
}
