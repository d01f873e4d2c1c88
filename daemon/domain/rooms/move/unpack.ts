/**
 * Reads a room file (a whole room, packed for a move or a backup) into directories that the host has chosen, strictly: the file's contents
 * are trusted only once all of it was read.
 */
import { type FileHandle, link, mkdir, open, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { monotonicMs } from "../../../core/clock.ts";
import { DeadlineError, within } from "../../../core/concurrency/published.ts";
import { BASE } from "../../../core/config/paths.ts";
import { errnoOf } from "../../../core/service-error.ts";
import { SYNC_EVERY_BYTES } from "../../../host/files/open-file.ts";
import { contentIn, entriesIn, makeStoreDirectories } from "../../../host/files/store-places.ts";
import { crossedDirectory } from "../../../host/isolation/directories.ts";
import { type FileName, type Line, MAX_LINE_BYTES, NotWhole, type RoomHeader, readFirst, readLine } from "./format.ts";
import type { Packed } from "./pack.ts";
import { leftMs, type MoveTimeouts } from "./timeouts.ts";

export interface Unpacked extends Packed {
  /** Directories for the room's files besides its drive, and for its sandboxes. */
  room: string;
  sandboxes: string;
  /** Files of this host's templates, by digest. */
  templates: ReadonlyMap<string, string>;
}

const ASK_EVERY_BYTES = 256 * 1024 ** 2;

export interface UnpackBounds {
  /** Maximum bytes of all files, without holes. */
  bytes: number;
  files: number;
  /** Maximum size of one file, with its holes; absent: unlimited. */
  size?: number;
  /**
   * For untrusted files: only the database state, the drive, and files at matching paths are accepted, and a piece counts as the space that
   * it takes on disk: many small pieces take much more than their bytes. A file counts as at least one block, even if it is empty.
   */
  mayHave?: RegExp;
  /** Called at intervals with the bytes taken so far; may refuse them by throwing. */
  allow?(taken: number): Promise<void>;
}

export class RoomReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #digest = new Bun.CryptoHasher("sha256");
  readonly #patience: MoveTimeouts;
  readonly #since = monotonicMs();
  #bytes = 0;
  #rest: Buffer = Buffer.alloc(0);
  #unsynced = 0;

  constructor(source: AsyncIterable<Uint8Array>, patience: MoveTimeouts) {
    this.#source = source[Symbol.asyncIterator]();
    this.#patience = patience;
  }

  /** The description of the room; called first. Throws NotWhole. */
  async about(): Promise<RoomHeader> {
    return readFirst(await this.#line());
  }

  /** Reads the first line, for files of another kind. Throws NotWhole. */
  async first(): Promise<string> {
    return await this.#line();
  }

  /** Writes the rest into existing directories; resolves once the file proved complete. Throws NotWhole, ENOSPC. */
  async unpack(into: Unpacked, bounds: UnpackBounds): Promise<void> {
    await makeStoreDirectories(into.store);
    let left = bounds.bytes;
    let files = 0;
    let links = 0;
    let allowedBytes = 0;
    /** `spare`: bytes that were counted when the file started and that its pieces have not used yet. */
    let current: { handle: FileHandle; size: number; at: number; spare: number } | null = null;
    const take = async (bytes: number) => {
      left -= bytes;
      if (left < 0) throw new NotWhole("the room packed in the room file exceeds the size limit of a room");
      if (bounds.bytes - left < allowedBytes + ASK_EVERY_BYTES) return;
      allowedBytes = bounds.bytes - left;
      await bounds.allow?.(allowedBytes);
    };
    const finish = async () => {
      if (!current) return;
      const { handle, size } = current;
      current = null;
      await handle.truncate(size).finally(() => handle.close());
    };
    try {
      for (;;) {
        const before = this.#digest.copy();
        const line = readLine(await this.#line());
        if ("end" in line) {
          await finish();
          const isWhole = line.end.files === files && line.end.sha256 === before.digest("hex");
          if (!isWhole) throw new NotWhole("the room file differs from the sent file");
          await this.#requireEnd();
          return;
        }
        if (bounds.mayHave && !mayCome(line, bounds.mayHave))
          throw new NotWhole("the room file has a part that is not allowed");
        if ("file" in line) {
          await finish();
          if (line.size > (bounds.size ?? line.size))
            throw new NotWhole("a file of the room in the room file exceeds the size limit");
          files++;
          if (files > bounds.files) throw tooMany();
          const spare = bounds.mayHave ? BLOCK_BYTES : 0;
          await take(spare);
          current = { handle: await made(into, line.file), size: line.size, at: 0, spare };
          continue;
        }
        if ("link" in line || "same" in line) {
          await finish();
          if (++links > bounds.files) throw tooMany();
          await linked(into, line);
          continue;
        }
        if (!current || line.at < current.at || line.at + line.bytes > current.size)
          throw new NotWhole("a piece of the room file has an impossible offset");
        const taken = bounds.mayHave ? takenBy(line, current.at) : line.bytes;
        const spared = Math.min(taken, current.spare);
        current.spare -= spared;
        await take(taken - spared);
        current.at = line.at + line.bytes;
        await this.#write(current.handle, line.at, line.bytes);
      }
    } finally {
      await (current as { handle: FileHandle } | null)?.handle.close();
    }
  }

  async #write(handle: FileHandle, from: number, count: number): Promise<void> {
    for (let at = from; at < from + count; ) {
      if (this.#rest.length === 0) await this.#more();
      const bytes = this.#take(Math.min(this.#rest.length, from + count - at));
      for (let written = 0; written < bytes.length; ) {
        const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, at + written);
        written += bytesWritten;
      }
      at += bytes.length;
      this.#unsynced += bytes.length;
      if (this.#unsynced < SYNC_EVERY_BYTES) continue;
      this.#unsynced = 0;
      await handle.datasync();
    }
  }

  async #line(): Promise<string> {
    for (let scanned = 0; ; ) {
      const end = this.#rest.indexOf(10, scanned);
      if (end !== -1) return this.#take(end + 1).toString("utf8", 0, end);
      scanned = this.#rest.length;
      if (scanned > MAX_LINE_BYTES) throw new NotWhole("a line of the room file is too long");
      await this.#more();
    }
  }

  #take(count: number): Buffer {
    const bytes = this.#rest.subarray(0, count);
    this.#rest = this.#rest.subarray(count);
    this.#digest.update(bytes);
    return bytes;
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#next("the next bytes of the room file");
    if (done) throw new NotWhole("the room file ended early");
    this.#rest = this.#rest.length === 0 ? Buffer.from(value) : Buffer.concat([this.#rest, value]);
  }

  async #next(label: string): Promise<IteratorResult<Uint8Array>> {
    const left = leftMs(this.#patience, this.#since, this.#bytes);
    // Without this check, bytes that are already available would never time out.
    if (left === 0) throw new DeadlineError(`${label} arrived too slowly`);
    const next = await within(this.#source.next(), left, label);
    if (!next.done) this.#bytes += next.value.byteLength;
    return next;
  }

  async #requireEnd(): Promise<void> {
    const { done } = await this.#next("the end of the room file");
    if (!done || this.#rest.length > 0) throw new NotWhole("the room file has data after its end");
  }
}

export const BLOCK_BYTES = 4096;

/** Bytes of the blocks of a piece, without a block that the previous piece has started. */
function takenBy({ at, bytes }: { at: number; bytes: number }, before: number): number {
  const usedBlocks = Math.ceil(before / BLOCK_BYTES);
  const first = Math.max(Math.floor(at / BLOCK_BYTES), usedBlocks);
  return Math.max(0, Math.ceil((at + bytes) / BLOCK_BYTES) - first) * BLOCK_BYTES;
}

function mayCome(line: Line, places: RegExp): boolean {
  if (!("file" in line)) return "at" in line;
  const { file } = line;
  return typeof file === "number" || file === "state" || file === "entries" || places.test(file);
}

function placeOf({ store, state, ...into }: Unpacked, name: FileName): string {
  if (name === "state") return state;
  if (name === "entries") return entriesIn(store);
  return typeof name === "number" ? contentIn(store, name) : belongingOf(into, name);
}

function belongingOf({ room, sandboxes }: Pick<Unpacked, "room" | "sandboxes">, place: string): string {
  const [first, ...rest] = place.split("/");
  return first === "sandboxes" ? join(sandboxes, ...rest) : join(room, place);
}

/** Disk layers, memory, and their backing files: never written again, and readable by every process that may enter their directory. */
const FROZEN = /^(snapshots|sandboxes)\/\w+\/(base\/|disk|memory)/;

async function made(into: Unpacked, name: FileName): Promise<FileHandle> {
  const path = placeOf(into, name);
  if (typeof name === "string") await makeAbove(path);
  const handle = await open(path, "wx", 0o600).catch((error: unknown) => {
    throw errnoOf(error) === "EEXIST" ? new NotWhole("the room file has two files with the same name") : error;
  });
  if (typeof name === "string" && FROZEN.test(name)) await handle.chmod(0o444);
  return handle;
}

/** Adds a further name for a received file, or for a template's file. */
async function linked(into: Unpacked, entry: { link: string; to: string } | { same: string; digest: string }) {
  const from = "link" in entry ? belongingOf(into, entry.to) : into.templates.get(entry.digest);
  const path = belongingOf(into, "link" in entry ? entry.link : entry.same);
  if (from === undefined) throw new NotWhole("a template that it needs no longer exists on this host");
  await makeAbove(path);
  await link(from, path).catch(async (error: unknown) => {
    if (errnoOf(error) !== "EXDEV") throw error;
    await symlink(from, path);
  });
}

/** Creates parent directories. Every QEMU may traverse those of a template's files; all others are private to the daemon. */
async function makeAbove(path: string): Promise<void> {
  const above = dirname(path);
  await mkdir(above, { recursive: true, mode: 0o700 });
  if (basename(above) === BASE) crossedDirectory(above);
}

function tooMany(): NotWhole {
  return new NotWhole("the room file has more files than a room's limit");
}
