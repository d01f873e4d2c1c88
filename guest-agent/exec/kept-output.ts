/**
 * The output of one execution: the last 16 MiB of its pieces, for any number of readers at their own pace.
 *
 *     command's pipes ─▶ ring in memory ─▶ ring file ─▶ overwritten
 *                          └── readers ───────┘
 *
 * The fastest reader sets the pace: once it has read all output so far, the command never gets further ahead of it than the ring in memory;
 * before that, the command blocks only when it would overtake the reader. Slower readers are overtaken and get `HistoryGone`, as do readers
 * with `aside`, for which nothing ever waits. Without other readers the oldest output is overwritten. Output that never fills a block stays
 * in memory and costs no file. If the disk accepts no writes, readers still get the output; only the history is lost.
 */
import { KEPT_OUTPUT_BYTES } from "../../shared/agent-protocol/kept-output.ts";
import { Channel } from "../../shared/agent-protocol/messages.ts";
import { MAX_PIECE_BYTES, PIECE_HEADER_BYTES, pieceHeader, readHeader } from "../../shared/agent-protocol/pieces.ts";
import { MemoryRing } from "./memory-ring.ts";
import { RingFile } from "./ring-file.ts";

/** Output that may be added at a command's end while a reader is a full ring behind: the command cannot be blocked any more. */
const SLACK_BYTES = 4 * 1024 * 1024;
const BLOCK_BYTES = 128 * 1024;
/**
 * Pieces read from a pipe in one call. A command blocked on its pipe is woken by each read, and the contention for the processor costs more
 * than all of the bytes: so one call reads as much of stdout as may be sent to a reader in one call. stderr output is small.
 */
const TAKEN_PIECES = { [Channel.stdout]: 4, [Channel.stderr]: 1 } as const;
/** Bytes that two pipes add before either of them blocks. */
const TAKEN_BYTES =
  (TAKEN_PIECES[Channel.stdout] + TAKEN_PIECES[Channel.stderr]) * (MAX_PIECE_BYTES + PIECE_HEADER_BYTES);
/** How far a command may get ahead of its follower. */
const AHEAD_BYTES = 192 * 1024;
/** A follower finds all of its output here: more than a block that is still to be written, plus the bytes that two pipes add. */
const MEMORY_BYTES = AHEAD_BYTES + TAKEN_BYTES;
const FILE_BYTES = KEPT_OUTPUT_BYTES + SLACK_BYTES + BLOCK_BYTES + TAKEN_BYTES;
/** An ended execution is retained for minutes, and there may be many: the limit of output that each keeps in memory. */
const ENDED_BYTES = 4096;

const NOTHING = Buffer.alloc(0);

type OutputChannel = typeof Channel.stdout | typeof Channel.stderr;

/** Fills these buffers in order with the available bytes; returns their number. */
export type Read = (places: readonly Uint8Array[]) => number;

/** A reader requested output that is no longer retained. */
export class HistoryGone extends Error {
  override name = "HistoryGone";
}

/** Contiguous pieces, with the offset in the total output: the unit of searching for a piece and of dropping. */
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
  /** The newest bytes; null once all of them are in the file and no reader is left. */
  #memory: MemoryRing | null = new MemoryRing(MEMORY_BYTES);
  /** Position up to which the output has been written to the file. */
  #flushed = 0;
  #end = 0;
  #lastSeq = 0;
  /** While the disk accepts no writes: resolves once every reader that has to read the output has done so. */
  #unwritten: Promise<void> | null = null;
  #closed = false;
  #forgotten = false;
  #commandEnded = false;
  #grown = Promise.withResolvers<void>();
  #read = Promise.withResolvers<void>();

  constructor(options: JournalOptions = { kept_bytes: KEPT_OUTPUT_BYTES, open: () => new RingFile(FILE_BYTES) }) {
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

  /** Offset after the newest byte. */
  get end(): number {
    return this.#end;
  }

  /** Whether it has a reader. */
  get isRead(): boolean {
    return this.#readers.size > 0;
  }

  /** Its size once no more output arrives and no reader is left. */
  get atRest(): { disk_bytes: number; memory_bytes: number } {
    const isSmall = this.#end <= ENDED_BYTES;
    return {
      disk_bytes: isSmall ? 0 : Math.min(this.#end, FILE_BYTES),
      memory_bytes: isSmall && this.#end > 0 ? ENDED_BYTES : 0,
    };
  }

  /** Appends bytes. Resolves when the journal accepts more. */
  async append(channel: OutputChannel, bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; ) {
      const begin = at;
      await this.take(channel, bytes.byteLength - begin, (places) => {
        for (const place of places) {
          place.set(bytes.subarray(at, at + place.byteLength));
          at += place.byteLength;
        }
        return at - begin;
      });
    }
  }

  /** Adds at most `most` bytes. Resolves to the number added, when more may follow: this is what blocks a command. */
  async take(channel: OutputChannel, most: number, read: Read): Promise<number> {
    while (this.#mustHold()) await this.#read.promise;
    if (this.#unwritten) await this.#unwritten;
    this.#dropOldest();
    const taken = this.#put(channel, Math.min(most, TAKEN_PIECES[channel] * MAX_PIECE_BYTES), read);
    while (this.#end - this.#flushed >= BLOCK_BYTES && !this.#forgotten) await this.#flush();
    return taken;
  }

  /** The command has ended: the remaining bytes in its pipes are no longer held back. */
  commandEnded(): void {
    this.#commandEnded = true;
    this.#moved();
  }

  /** No more output will come. */
  close(): void {
    this.#closed = true;
    this.#wake();
    if (this.#readers.size === 0) void this.#emptyMemory();
  }

  /** Nothing is kept any more. */
  forget(): void {
    this.#forgotten = true;
    this.#closed = true;
    this.#memory = null;
    this.#file?.close();
    this.#wake();
    this.#moved();
  }

  /**
   * Reads from the piece after this one; 0 reads from the first. Nothing waits for a reader with `aside`. Throws HistoryGone if the piece
   * is no longer retained.
   */
  async reader(after: number, aside = false): Promise<Reader> {
    if (this.#forgotten || after + 1 < this.oldestSeq) throw new HistoryGone("that output is no longer kept");
    const block = this.#blocks.findLast(({ first_seq }) => first_seq <= after + 1) ?? this.#blocks[0];
    const reader = new Reader(this, block.offset, aside);
    this.#readers.add(reader);
    if (after + 1 === block.first_seq) return reader;
    try {
      await reader.skipTo(after);
      return reader;
    } catch (error) {
      reader.close();
      throw error;
    }
  }

  /**
   * For readers: bytes from `offset` on that are in memory, valid until more output is added; empty if absent yet, null if they are
   * in the file.
   */
  inMemory(offset: number): Buffer | null {
    this.#requireKept(offset);
    if (offset === this.#end) return NOTHING;
    return this.#memory && offset >= this.#memoryBegin ? this.#memory.at(offset, this.#end - offset) : null;
  }

  /** For readers: at most `most` bytes from `offset` on that are in the file, in the buffer that `room` returns. */
  async inFile(offset: number, most: number, room: (bytes: number) => Buffer): Promise<Buffer> {
    const bytes = room(Math.min(most, this.#memoryBegin - offset));
    if (!this.#file) throw new HistoryGone("that output is no longer kept");
    await this.#file.read(offset, bytes);
    // Bytes that were overwritten during the read are not the requested ones.
    this.#requireKept(offset);
    return bytes;
  }

  /** For readers: resolves when there is more output, or when the output has ended. */
  get grown(): Promise<void> {
    return this.#grown.promise;
  }

  /** For readers: reports that a reader has advanced. */
  moved(): void {
    this.#moved();
  }

  leave(reader: Reader): void {
    this.#readers.delete(reader);
    this.#moved();
    this.#wake();
    if (this.#closed && this.#readers.size === 0) void this.#emptyMemory();
  }

  get #memoryBegin(): number {
    return this.#memory ? Math.max(0, this.#end - this.#memory.capacity) : this.#end;
  }

  #requireKept(offset: number): void {
    if (this.#forgotten || offset < this.#blocks[0].offset) throw new HistoryGone("that output is no longer kept");
  }

  #fastest(): Reader | undefined {
    let fastest: Reader | undefined;
    for (const reader of this.#readers) {
      if (!reader.aside && (!fastest || reader.offset > fastest.offset)) fastest = reader;
    }
    return fastest;
  }

  /** Whether all readers have yet to read output before this offset. */
  #isAwaited(offset: number): boolean {
    const fastest = this.#fastest();
    return fastest !== undefined && fastest.offset < offset && !this.#forgotten;
  }

  /** Whether the oldest block may be dropped: the rest alone fills the journal's limit. */
  #isOver(): boolean {
    const next = this.#blocks[1];
    return next !== undefined && this.#end - next.offset >= this.#kept;
  }

  #mustHold(): boolean {
    if (this.#commandEnded) return false;
    const minOffset = this.#fastest()?.follows ? this.#end - AHEAD_BYTES : 0;
    return this.#isAwaited(Math.max(minOffset, this.#isOver() ? (this.#blocks[1]?.offset ?? 0) : 0));
  }

  #dropOldest(): void {
    while (this.#isOver()) {
      const [oldest, next] = this.#blocks;
      const full = this.#end - oldest.offset >= this.#kept + SLACK_BYTES;
      if (!next || (this.#isAwaited(next.offset) && !full)) return;
      this.#blocks.shift();
    }
  }

  #put(channel: OutputChannel, most: number, read: Read): number {
    const memory = this.#memory;
    // Output of a forgotten execution is discarded; its command keeps running.
    if (!memory) return read([Buffer.allocUnsafe(most)]);
    memory.makeRoom(this.#end, most + PIECE_HEADER_BYTES * Math.ceil(most / MAX_PIECE_BYTES));
    const places: Uint8Array[] = [];
    for (let at = this.#end, left = most; left > 0; left -= MAX_PIECE_BYTES) {
      at += PIECE_HEADER_BYTES;
      places.push(...memory.places(at, Math.min(left, MAX_PIECE_BYTES)));
      at += MAX_PIECE_BYTES;
    }
    const taken = read(places);
    if (taken === 0) return 0;
    for (let left = taken; left > 0; left -= MAX_PIECE_BYTES) {
      const length = Math.min(left, MAX_PIECE_BYTES);
      memory.write(pieceHeader(channel, ++this.#lastSeq, length), this.#end);
      this.#end += PIECE_HEADER_BYTES + length;
    }
    this.#wake();
    return taken;
  }

  async #emptyMemory(): Promise<void> {
    while (this.#end - this.#flushed > 0 && this.#end > ENDED_BYTES && !this.#forgotten) await this.#flush();
    if (this.#flushed === this.#end && this.#readers.size === 0) this.#memory = null;
  }

  /** Writes unflushed output to the file: into the page cache, so it takes no longer than a copy. */
  async #flush(): Promise<void> {
    if (this.#unwritten) return await this.#unwritten;
    const end = this.#end;
    this.#blocks.push({ offset: end, first_seq: this.#lastSeq + 1 });
    try {
      this.#file ??= this.#open();
      while (this.#memory && this.#flushed < end) {
        const part = this.#memory.at(this.#flushed, end - this.#flushed);
        this.#file.write(part, this.#flushed);
        this.#flushed += part.byteLength;
      }
    } catch {
      this.#flushed = end;
      this.#unwritten = this.#outlive(end);
      await this.#unwritten.finally(() => {
        this.#unwritten = null;
      });
    }
  }

  /** The disk accepts no writes: readers still get this output, then it is dropped. */
  async #outlive(end: number): Promise<void> {
    while (this.#isAwaited(end)) await this.#read.promise;
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

/** A reader of the journal, from a given piece on. */
export class Reader {
  readonly aside: boolean;
  readonly #journal: Journal;
  #offset: number;
  /** Buffer of the last result of `next`. */
  #own: Buffer = NOTHING;
  /** Buffer for bytes from the file. */
  #fromFile: Buffer = NOTHING;
  /** The part of `#fromFile` that was not consumed yet. */
  #left: Buffer = NOTHING;
  #follows = false;
  #closed = false;

  constructor(journal: Journal, offset: number, aside: boolean) {
    this.aside = aside;
    this.#journal = journal;
    this.#offset = offset;
  }

  get offset(): number {
    return this.#offset;
  }

  /** Whether the reader has read all output so far, and waits for more. */
  get follows(): boolean {
    return this.#follows;
  }

  /**
   * The next bytes, at most `most`, valid until the next call; null at the end of all output. Throws HistoryGone if the reader was
   * overtaken.
   */
  async next(most: number): Promise<Buffer | null> {
    let own: Buffer | null = null;
    const isMore = await this.pass(true, (bytes) => {
      const count = Math.min(most, bytes.byteLength);
      if (this.#own.byteLength < count) this.#own = Buffer.allocUnsafeSlow(count);
      own = this.#own.subarray(0, count);
      return bytes.copy(own);
    });
    return isMore ? own : null;
  }

  /**
   * Passes the next bytes to `take`, which are valid only during the call; it returns the number that it consumed. Resolves to false at the
   * end of all output, or, unless `wait`, at the end of the available output. Throws HistoryGone if the reader was overtaken.
   */
  async pass(wait: boolean, take: (bytes: Buffer) => number): Promise<boolean> {
    while (!this.#closed) {
      const { grown, closed } = this.#journal;
      const inMemory = this.#left.byteLength > 0 ? null : this.#journal.inMemory(this.#offset);
      if (inMemory === null && this.#left.byteLength === 0) this.#left = await this.#read();
      const bytes = inMemory ?? this.#left;
      if (bytes.byteLength > 0) {
        const taken = take(bytes);
        this.#left = inMemory ? NOTHING : bytes.subarray(taken);
        this.#move(taken);
        return true;
      }
      if (closed || !wait) return false;
      this.#follows = true;
      await grown;
    }
    return false;
  }

  /** Advances to the piece after position `after`. */
  async skipTo(after: number): Promise<void> {
    for (;;) {
      const bytes = this.#journal.inMemory(this.#offset) ?? (await this.#read());
      let at = 0;
      while (bytes.byteLength - at >= PIECE_HEADER_BYTES) {
        const { seq, length } = readHeader(bytes, at);
        if (seq > after) return this.#move(at);
        at += length;
      }
      if (bytes.byteLength === 0) return;
      // The last piece may extend past the bytes read so far.
      this.#move(at);
    }
  }

  /** A pending `next` resolves to null. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#journal.leave(this);
  }

  #read(): Promise<Buffer> {
    return this.#journal.inFile(this.#offset, BLOCK_BYTES, (bytes) => {
      if (this.#fromFile.byteLength < bytes) this.#fromFile = Buffer.allocUnsafeSlow(bytes);
      return this.#fromFile.subarray(0, bytes);
    });
  }

  #move(bytes: number): void {
    this.#offset += bytes;
    this.#journal.moved();
  }
}
