/**
 * Owns the output of one execution: the last 16 MiB of its pieces, for any number of readers at their own pace.
 *
 *   command's pipes ─▶ tail (memory) ─▶ ring file ─▶ overwritten
 *                        └── readers ───────┘
 *
 * While anyone reads, the command waits before the fastest of them would be overtaken; slower ones are overtaken, and told.
 * With no reader the oldest output is overwritten. What never fills a block stays in memory and costs no file. When the disk
 * takes nothing, output reaches those who read it all the same; only the past is not kept.
 */
import { MAX_PIECE_BYTES, PIECE_HEADER_BYTES, readHeader, writePiece } from "../../shared/agent-protocol/pieces.ts";
import { RingFile } from "./ring-file.ts";

export const KEPT_BYTES = 16 * 1024 * 1024;
/** What a command's end may add while a reader is a full ring behind: it cannot be told to wait any more. */
const SLACK_BYTES = 4 * 1024 * 1024;
const BLOCK_BYTES = 128 * 1024;
/** A block and the pieces that two pipes add before it is written. */
const TAIL_BYTES = BLOCK_BYTES + 2 * (MAX_PIECE_BYTES + PIECE_HEADER_BYTES);
const FILE_BYTES = KEPT_BYTES + SLACK_BYTES + 2 * TAIL_BYTES;
const FIRST_TAIL_BYTES = 4096;

/** A reader wants what is not kept any more. */
export class HistoryGone extends Error {
  override name = "HistoryGone";
}

/** Pieces that lie together, from an offset of all output ever: where a piece is looked for, and what is dropped at once. */
interface Block {
  offset: number;
  first_seq: number;
}

export interface JournalOptions {
  kept_bytes: number;
  open(): Pick<RingFile, "read" | "write" | "close">;
}

export class Journal {
  readonly #kept: number;
  readonly #open: JournalOptions["open"];
  readonly #readers = new Set<Reader>();
  #file: ReturnType<JournalOptions["open"]> | null = null;
  #blocks: [Block, ...Block[]] = [{ offset: 0, first_seq: 1 }];
  #tail = Buffer.alloc(0);
  #tailOffset = 0;
  #end = 0;
  #lastSeq = 0;
  /** What the disk did not take, for as long as somebody has still to read it. */
  #unwritten: { bytes: Buffer; offset: number; done: Promise<void> } | null = null;
  #closed = false;
  #forgotten = false;
  #commandEnded = false;
  #grown = Promise.withResolvers<void>();
  #read = Promise.withResolvers<void>();

  constructor(options: JournalOptions = { kept_bytes: KEPT_BYTES, open: () => new RingFile(FILE_BYTES) }) {
    this.#kept = options.kept_bytes;
    this.#open = options.open;
  }

  get oldestSeq(): number {
    return this.#blocks[0].first_seq;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Adds what was read from a pipe. Resolves when more may follow: that is what holds a command. */
  async append(channel: number, bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; at += MAX_PIECE_BYTES) {
      while (this.#mustHold()) await this.#read.promise;
      this.#dropOldest();
      this.#put(channel, bytes.subarray(at, at + MAX_PIECE_BYTES));
      while (this.#tailLength >= BLOCK_BYTES) await this.#flush();
    }
  }

  /** The command has ended: what is left in its pipes is not held back any more. */
  commandEnded(): void {
    this.#commandEnded = true;
    this.#moved();
  }

  /** No more output will come. */
  close(): void {
    this.#closed = true;
    this.#wake();
    void this.#emptyMemory();
  }

  /** Nothing is kept any more. */
  forget(): void {
    this.#forgotten = true;
    this.#closed = true;
    this.#file?.close();
    this.#wake();
    this.#moved();
  }

  /** Reads from after this piece on; 0 reads from the first. Throws HistoryGone when it is not kept. */
  async reader(after: number): Promise<Reader> {
    if (this.#forgotten || after + 1 < this.oldestSeq) throw new HistoryGone("that output is not kept any more");
    const block = this.#blocks.findLast(({ first_seq }) => first_seq <= after + 1) ?? this.#blocks[0];
    const reader = new Reader(this, block.offset);
    this.#readers.add(reader);
    try {
      await reader.skipTo(after);
      return reader;
    } catch (error) {
      reader.close();
      throw error;
    }
  }

  /** For readers: bytes from `offset` on, at most so many; none when there are none yet. */
  async bytesAt(offset: number, most: number): Promise<Buffer> {
    this.#requireKept(offset);
    const inTail = offset - this.#tailOffset;
    if (inTail >= 0) return this.#tail.subarray(inTail, Math.min(inTail + most, this.#tailLength));
    const unwritten = this.#unwritten;
    if (unwritten && offset >= unwritten.offset) {
      return unwritten.bytes.subarray(offset - unwritten.offset, offset - unwritten.offset + most);
    }
    const written = (unwritten?.offset ?? this.#tailOffset) - offset;
    if (!this.#file) throw new HistoryGone("that output is not kept any more");
    const bytes = await this.#file.read(offset, Math.min(most, written));
    // What was overwritten meanwhile is not what was asked for.
    this.#requireKept(offset);
    return bytes;
  }

  /** For readers: resolves when there is more, or nothing more will come. */
  get grown(): Promise<void> {
    return this.#grown.promise;
  }

  /** For readers: one of them has read on. */
  moved(): void {
    this.#moved();
  }

  leave(reader: Reader): void {
    this.#readers.delete(reader);
    this.#moved();
    this.#wake();
  }

  get #tailLength(): number {
    return this.#end - this.#tailOffset;
  }

  #requireKept(offset: number): void {
    if (this.#forgotten || offset < this.#blocks[0].offset) throw new HistoryGone("that output is not kept any more");
  }

  #fastest(): number {
    let fastest = -1;
    for (const { offset } of this.#readers) fastest = Math.max(fastest, offset);
    return fastest;
  }

  /** Whether the oldest block is more than has to be kept. */
  #isOver(): boolean {
    const next = this.#blocks[1];
    return next !== undefined && this.#end - next.offset >= this.#kept;
  }

  #mustHold(): boolean {
    if (this.#commandEnded || this.#forgotten || this.#readers.size === 0 || !this.#isOver()) return false;
    return this.#fastest() < (this.#blocks[1]?.offset ?? 0);
  }

  #dropOldest(): void {
    while (this.#isOver()) {
      const [oldest, next] = this.#blocks;
      const full = this.#end - oldest.offset >= this.#kept + SLACK_BYTES;
      if (!next || (this.#readers.size > 0 && this.#fastest() < next.offset && !full)) return;
      this.#blocks.shift();
    }
  }

  #put(channel: number, bytes: Uint8Array): void {
    const at = this.#tailLength;
    const needed = at + PIECE_HEADER_BYTES + bytes.byteLength;
    if (needed > this.#tail.byteLength) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, FIRST_TAIL_BYTES, this.#tail.byteLength * 2));
      grown.set(this.#tail.subarray(0, at));
      this.#tail = grown;
    }
    this.#lastSeq++;
    this.#end = this.#tailOffset + writePiece(this.#tail, at, { channel, seq: this.#lastSeq, bytes });
    this.#wake();
  }

  /** An execution that has ended is kept for minutes, and there may be many. */
  async #emptyMemory(): Promise<void> {
    while (this.#tailLength > FIRST_TAIL_BYTES && !this.#forgotten) await this.#flush();
  }

  /** Writes the tail to the file: into the page cache, so that it takes no longer than a copy. */
  async #flush(): Promise<void> {
    if (this.#unwritten) return await this.#unwritten.done;
    const bytes = this.#tail.subarray(0, this.#tailLength);
    const offset = this.#tailOffset;
    this.#tailOffset = this.#end;
    this.#blocks.push({ offset: this.#end, first_seq: this.#lastSeq + 1 });
    try {
      this.#file ??= this.#open();
      this.#file.write(bytes, offset);
      // Readers may still hold parts of it, so that it is never used again.
      this.#tail = Buffer.allocUnsafeSlow(this.#closed ? 0 : TAIL_BYTES);
    } catch {
      this.#tail = Buffer.alloc(0);
      const done = this.#outlive(offset + bytes.byteLength).finally(() => {
        this.#unwritten = null;
      });
      this.#unwritten = { bytes, offset, done };
    }
  }

  /** A disk that takes nothing: those who read still get it, and then it is gone. */
  async #outlive(end: number): Promise<void> {
    while (this.#readers.size > 0 && this.#fastest() < end && !this.#forgotten) await this.#read.promise;
    while (this.#blocks[1] && this.#blocks[0].offset < end) this.#blocks.shift();
  }

  #wake(): void {
    const { resolve } = this.#grown;
    this.#grown = Promise.withResolvers<void>();
    resolve();
  }

  #moved(): void {
    const { resolve } = this.#read;
    this.#read = Promise.withResolvers<void>();
    resolve();
  }
}

/** One who reads the journal, from a piece on. */
export class Reader {
  readonly #journal: Journal;
  #offset: number;
  #closed = false;

  constructor(journal: Journal, offset: number) {
    this.#journal = journal;
    this.#offset = offset;
  }

  get offset(): number {
    return this.#offset;
  }

  /**
   * The next bytes, at most so many, which must stay as they are; null at the end of all output, or, unless told to wait, at the
   * end of what there is. Throws HistoryGone when the reader was overtaken.
   */
  async next(most: number, wait: boolean): Promise<Buffer | null> {
    while (!this.#closed) {
      const { grown, closed } = this.#journal;
      const bytes = await this.#journal.bytesAt(this.#offset, most);
      if (bytes.byteLength > 0) {
        this.#move(bytes.byteLength);
        return bytes;
      }
      if (closed || !wait) return null;
      await grown;
    }
    return null;
  }

  /** Moves on to the piece after this one. */
  async skipTo(after: number): Promise<void> {
    for (;;) {
      const bytes = await this.#journal.bytesAt(this.#offset, BLOCK_BYTES);
      let at = 0;
      while (bytes.byteLength - at >= PIECE_HEADER_BYTES) {
        const { seq, length } = readHeader(bytes, at);
        if (seq > after) return this.#move(at);
        at += length;
      }
      if (bytes.byteLength === 0) return;
      // The last piece may reach beyond what was read.
      this.#move(at);
    }
  }

  /** Whoever waits in `next` gets null. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#journal.leave(this);
  }

  #move(bytes: number): void {
    this.#offset += bytes;
    this.#journal.moved();
  }
}
