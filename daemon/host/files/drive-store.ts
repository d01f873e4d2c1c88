/**
 * A drive as stored in a checkpoint: a list of its entries, and the contents of its files, under numbers. Names, links, modes and owners
 * that guests have chosen are in the list alone; no file or link on the host's disk has a name or target from a guest.
 *
 *     <store> ─ entries.ndjson      ["d", name, …] its entries … ["u"] · ["f", name, …, number] · ["l", name, …, target]
 *             └ contents ─ 00 … ff ─ <number>
 *
 * A drive that guests write to is copied twice: once while they run, and once more when nothing writes, for the changes since: a file with
 * the same change time and size is unchanged. Retained are files, directories and symbolic links with mode, owner, and modification time;
 * hard links stay hard links. Sockets, FIFOs and devices are left out, and so are extended attributes, which guests cannot set.
 *
 * For a dedicated thread: everything here blocks.
 */

import * as fs from "node:fs";
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { wallMs } from "../../core/clock.ts";
import { errnoOf } from "../../core/service-error.ts";
import { driveRootOf } from "../isolation/directories.ts";
import { DRIVE_RANGE } from "../isolation/ids.ts";
import { Beneath } from "./beneath.ts";
import { cloneFile, syncFileSystem } from "./clone.ts";
import type { Entry } from "./entries.ts";
import type { Status } from "./facts.ts";
import { O_CLOEXEC, SystemError, setTimes } from "./libc.ts";
import type { RawPath } from "./raw-path.ts";
import { contentIn, entriesIn, makeStoreDirectories } from "./store-places.ts";
import { isTemporaryName } from "./temporary.ts";
import { LEVELS_HELD, walk } from "./walk.ts";

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } = constants;

const FORMAT = 1;
/** A change this recent may be followed by another with the same timestamp. */
const CLOCK_NS = 2_000_000_000n;
const FLUSH_CHARACTERS = 256 * 1024;
/** User in the guest for a user that the other room's guests do not have. */
const NOBODY = 65_534;

export interface Bounds {
  bytes: number;
  entries: number;
}

export interface Copied {
  /** Disk usage of the files. */
  bytes: number;
  entries: number;
  /** Files that were copied by this pass. */
  copied: number;
}

/** Called between pieces of work; throws if the work is cancelled. */
export type Between = () => void;

/** Common to all entries: mode, the guests' user and group, modification time. */
type Meta = [mode: number, uid: number, gid: number, seconds: string, nanoseconds: number];
type Line =
  | ["drive", number, ...Meta]
  | ["d", string, ...Meta]
  | ["f", string, ...Meta, content: number, isLinked: 0 | 1]
  | ["l", string, ...Meta, target: string]
  | ["u"]
  | ["end"];

interface Content {
  number: number;
  size: number;
  changed: bigint;
  bytes: number;
  /** The last pass that found the file. */
  pass: number;
}

/** The copying of one drive, in passes. */
export class StoreWriter {
  readonly #drive: string;
  readonly #store: string;
  readonly #root: number;
  readonly #bounds: Bounds;
  readonly #between: Between;
  readonly #contents = new Map<bigint, Content>();
  #next = 0;
  #pass = 0;

  constructor(drive: string, store: string, bounds: Bounds, between: Between) {
    this.#drive = drive;
    this.#store = store;
    this.#root = driveRootOf(drive);
    this.#bounds = bounds;
    this.#between = between;
  }

  /** Copies new content; the last pass runs while nothing writes, and makes the list. Throws EDQUOT above `bounds`. */
  async pass(isLast: boolean): Promise<Copied> {
    if (this.#pass++ === 0) await makeStoreDirectories(this.#store);
    const copied: Copied = { bytes: 0, entries: 0, copied: 0 };
    const list = isLast ? new List(entriesIn(this.#store)) : null;
    try {
      using drive = Beneath.open(this.#drive);
      list?.add(["drive", FORMAT, ...this.#metaOf(drive.ownStatus())]);
      const end = await walk(drive, (directory, entry) => this.#visit(directory, entry, list, copied), {
        most: this.#bounds.entries,
        onDown: (isEntered) => {
          if (!isEntered) list?.add(["u"]);
        },
        onUp: () => list?.add(["u"]),
      });
      if (end === "cut") throw new SystemError("EDQUOT", "too many entries");
      if (end === "moved" && isLast) throw new Error("the drive changed while it was quiesced");
      if (!isLast) return copied;
      list?.add(["end"]);
      list?.finish();
    } finally {
      list?.[Symbol.dispose]();
    }
    this.#forgetOld();
    return copied;
  }

  /** Flushes the copied data to disk. */
  sync(): Copied {
    syncTree(this.#store);
    return { bytes: 0, entries: 0, copied: 0 };
  }

  #visit(directory: Beneath, { name, type }: Entry, list: List | null, copied: Copied): void {
    this.#between();
    if (type === "file") {
      if (!isTemporaryName(name)) this.#visitFile(directory, name, list, copied);
      return;
    }
    const status = directory.status(name);
    if (!status || status.type !== type) {
      // The entry was another a moment ago; the walk descends by the earlier type.
      if (type === "directory") list?.add(["d", name, 0o700, 0, 0, "0", 0]);
      return;
    }
    copied.entries++;
    if (type === "directory") list?.add(["d", name, ...this.#metaOf(status)]);
    if (type === "symlink") list?.add(["l", name, ...this.#metaOf(status), directory.linkTargetNow(name)]);
  }

  #visitFile(directory: Beneath, name: RawPath, list: List | null, copied: Copied): void {
    const found = directory.plainEntry(name);
    if (!found || found.descriptor === null) return;
    const { status, descriptor } = found;
    try {
      copied.entries++;
      const known = this.#contents.get(status.inode);
      const content = known?.pass === this.#pass ? known : this.#keep(descriptor, status, known, copied);
      list?.add(["f", name, ...this.#metaOf(status), content.number, status.links > 1 ? 1 : 0]);
    } finally {
      closeSync(descriptor);
    }
  }

  #keep(descriptor: number, status: Status, known: Content | undefined, copied: Copied): Content {
    const { inode, size_bytes: size, changed } = status;
    const isSame = known !== undefined && known.changed === changed && known.size === size;
    const number = known?.number ?? this.#next++;
    const bytes = isSame ? known.bytes : this.#copy(descriptor, size, number, copied);
    // A file that may still change with the same timestamp never counts as unchanged.
    const isSure = BigInt(wallMs()) * 1_000_000n - changed > CLOCK_NS;
    const content = { number, size, changed: isSame || isSure ? changed : -1n, bytes, pass: this.#pass };
    this.#contents.set(inode, content);
    copied.bytes += bytes;
    this.#require(copied.bytes);
    return content;
  }

  #copy(from: number, size: number, number: number, copied: Copied): number {
    const to = openSync(contentIn(this.#store, number), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600);
    try {
      let bytes = 0;
      cloneFile(from, to, size, (piece) => {
        bytes += piece;
        this.#require(copied.bytes + bytes);
        this.#between();
      });
      copied.copied++;
      return fstatSync(to).blocks * 512;
    } finally {
      closeSync(to);
    }
  }

  #require(bytes: number): void {
    if (bytes > this.#bounds.bytes) throw new SystemError("EDQUOT", "too many bytes");
  }

  #forgetOld(): void {
    for (const [inode, { pass, number }] of this.#contents) {
      if (pass === this.#pass) continue;
      this.#contents.delete(inode);
      rmSync(contentIn(this.#store, number), { force: true });
    }
  }

  #metaOf({ mode, uid, gid, modified: [seconds, nanoseconds] }: Status): Meta {
    return [mode, uid - this.#root, gid - this.#root, String(seconds), nanoseconds];
  }
}

/** The list of entries, while it is written. */
class List implements Disposable {
  readonly #file: number;
  #text = "";

  constructor(path: string) {
    this.#file = openSync(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600);
  }

  add(line: Line): void {
    this.#text += `${JSON.stringify(line)}\n`;
    if (this.#text.length >= FLUSH_CHARACTERS) this.finish();
  }

  finish(): void {
    const bytes = Buffer.from(this.#text, "utf8");
    this.#text = "";
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}

/** A store, and the drive to make of it. */
export interface Restoring {
  store: string;
  /** An empty directory of the host that no guest can reach yet. */
  drive: string;
  /** A directory beside it, for the further hard links of files; leftovers in it are removed, and it is removed at the end. */
  links: string;
  /** Host user of its guests' root. */
  root: number;
  /** Limits of the result, for a store of untrusted origin: one file in it can be listed under many names. */
  bounds?: Bounds;
}

/** Restores a drive from a store. Returns once it is on disk. */
export function restoreStore({ store, drive, links, root, bounds }: Restoring, between: Between): Copied {
  const copied: Copied = { bytes: 0, entries: 0, copied: 0 };
  rmSync(links, { recursive: true, force: true });
  mkdirSync(links, { mode: 0o700 });
  try {
    using target = new Target(store, drive, root, links);
    for (const line of linesOf(entriesIn(store))) {
      target.add(line, copied, between);
      if (bounds) requireWithin(bounds, copied);
      between();
    }
    target.finish();
  } finally {
    rmSync(links, { recursive: true, force: true });
  }
  syncTree(drive);
  return copied;
}

function requireWithin({ bytes, entries }: Bounds, copied: Copied): void {
  if (copied.bytes > bytes) throw new SystemError("EDQUOT", "too many bytes");
  if (copied.entries > entries) throw new SystemError("EDQUOT", "too many entries");
}

interface Level {
  descriptor: number | null;
  meta: Meta;
}

/** The drive being restored, at the list's current depth. */
class Target implements Disposable {
  readonly #store: string;
  readonly #root: number;
  readonly #links: string;
  /** Levels from the drive's root down; only the deepest has an open descriptor. */
  readonly #levels: Level[] = [];
  readonly #linked = new Set<number>();
  #isWhole = false;
  readonly #top: number;

  constructor(store: string, drive: string, root: number, links: string) {
    this.#store = store;
    this.#root = root;
    this.#links = links;
    this.#top = openSync(drive, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }

  add(line: Line, copied: Copied, between: Between): void {
    if (this.#isWhole) throw new Error("the list of the drive's entries has data after its end");
    if (line[0] === "u") {
      this.#up();
      return;
    }
    if (line[0] === "end") {
      this.#isWhole = true;
      return;
    }
    if (line[0] === "drive") {
      const [, format, ...meta] = line;
      if (format !== FORMAT) throw new Error("the drive was stored in a format that this roomd does not know");
      if (this.#levels.length > 0 || !isMeta(meta)) throw new Error(NOT_WELL_MADE);
      this.#levels.push({ descriptor: this.#top, meta });
      return;
    }
    copied.entries++;
    requireWellMade(line);
    const [kind, text, mode, uid, gid, seconds, nanoseconds] = line;
    const [name, meta] = [text as RawPath, [mode, uid, gid, seconds, nanoseconds] as Meta];
    if (kind === "d") this.#down(name, meta);
    else if (kind === "l") this.#symlink(name, meta, line[7]);
    else this.#file(name, meta, { content: line[7], isLinked: line[8] === 1 }, copied, between);
  }

  /** Restores the metadata of the drive's root. Throws if the list is incomplete. */
  finish(): void {
    if (this.#levels.length !== 1 || !this.#isWhole) throw new Error("the list of the drive's entries is incomplete");
    const [level] = this.#levels;
    if (level) this.#settle(this.#top, level.meta);
  }

  [Symbol.dispose](): void {
    for (const { descriptor } of this.#levels.slice(1)) if (descriptor !== null) closeSync(descriptor);
    closeSync(this.#top);
  }

  get #current(): number {
    const descriptor = this.#levels.at(-1)?.descriptor;
    if (descriptor === undefined || descriptor === null)
      throw new Error("the list of the drive's entries is incomplete");
    return descriptor;
  }

  #at(name: RawPath): Buffer {
    return Buffer.from(`/proc/self/fd/${this.#current}/${name}`, "latin1");
  }

  #down(name: RawPath, meta: Meta): void {
    const at = this.#at(name);
    mkdirSync(at, { mode: 0o700 });
    const descriptor = openSync(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    this.#levels.push({ descriptor, meta });
    const left = this.#levels.at(-1 - LEVELS_HELD);
    if (!left || left.descriptor === null || left.descriptor === this.#top) return;
    closeSync(left.descriptor);
    left.descriptor = null;
  }

  #up(): void {
    const below = this.#levels.pop();
    const above = this.#levels.at(-1);
    if (!below || below.descriptor === null || !above) throw new Error("the list of the drive's entries is incomplete");
    above.descriptor ??= openSync(`/proc/self/fd/${below.descriptor}/..`, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    this.#settle(below.descriptor, below.meta);
    closeSync(below.descriptor);
  }

  #symlink(name: RawPath, meta: Meta, target: string): void {
    const [, uid, gid] = meta;
    const at = this.#at(name);
    fs.symlinkSync(Buffer.from(target, "latin1"), at);
    if (isRoot) fs.lchownSync(at, this.#user(uid), this.#user(gid));
    this.#time(name, meta);
  }

  #file(
    name: RawPath,
    meta: Meta,
    { content, isLinked }: { content: number; isLinked: boolean },
    copied: Copied,
    between: Between,
  ): void {
    const first = join(this.#links, String(content));
    if (this.#linked.has(content) && isLinkedTo(first, this.#at(name))) return;
    const to = openSync(this.#at(name), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600);
    try {
      const from = openSync(contentIn(this.#store, content), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
      try {
        cloneFile(from, to, fstatSync(from).size, between);
      } finally {
        closeSync(from);
      }
      copied.copied++;
      copied.bytes += fstatSync(to).blocks * 512;
      this.#settle(to, meta);
    } finally {
      closeSync(to);
    }
    if (!isLinked) return;
    rmSync(first, { force: true });
    fs.linkSync(this.#at(name), first);
    this.#linked.add(content);
  }

  #settle(descriptor: number, meta: Meta): void {
    const [mode, uid, gid] = meta;
    if (isRoot) fchownSync(descriptor, this.#user(uid), this.#user(gid));
    // A change of owner clears the setuid bits.
    fchmodSync(descriptor, mode);
    this.#time(null, meta, descriptor);
  }

  #time(name: RawPath | null, [, , , seconds, nanoseconds]: Meta, descriptor = this.#current): void {
    setTimes(descriptor, name, BigInt(seconds), BigInt(nanoseconds));
  }

  /** Maps a guest's user into this room's range; without a range the number stays the same. */
  #user(guests: number): number {
    const isKnown = guests >= 0 && (this.#root === 0 || guests < DRIVE_RANGE);
    return this.#root + (isKnown ? guests : NOBODY);
  }
}

const NOT_WELL_MADE = "the list of the drive's entries is malformed";

/** A list may be of another origin: checks that each name is an entry of its directory, and each number a number. */
function requireWellMade(line: Exclude<Line, ["drive", ...unknown[]] | ["u"] | ["end"]>): void {
  const [kind, name, ...rest] = line;
  const isName = isBytes(name, MAX_NAME) && name !== "." && name !== ".." && !name.includes("/");
  const isKind = kind === "d" || (kind === "f" ? isNumber(rest[5]) : kind === "l" && isBytes(rest[5], MAX_TARGET));
  if (!isName || !isKind || !isMeta(rest.slice(0, 5))) throw new Error(NOT_WELL_MADE);
}

/** Bytes, one per character, up to Linux's limits for names and links. */
const MAX_NAME = 255;
const MAX_TARGET = 4095;

function isBytes(value: unknown, most: number): value is string {
  if (typeof value !== "string" || value === "" || value.length > most || value.includes("\0")) return false;
  return Buffer.from(value, "latin1").toString("latin1") === value;
}

const isNumber = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;

function isMeta([mode, uid, gid, seconds, nanoseconds]: readonly unknown[]): boolean {
  const isTime = typeof seconds === "string" && /^-?\d{1,18}$/.test(seconds) && isNumber(nanoseconds);
  return isNumber(mode) && Number(mode) <= 0o7777 && Number.isSafeInteger(uid) && Number.isSafeInteger(gid) && isTime;
}

/** False if the file has its maximum of links: the next name becomes a copy with the same content. */
function isLinkedTo(first: string, name: Buffer): boolean {
  try {
    fs.linkSync(first, name);
    return true;
  } catch (error) {
    if (errnoOf(error) === "EMLINK") return false;
    throw error;
  }
}

const isRoot = process.geteuid?.() === 0;

function* linesOf(path: string): Generator<Line> {
  const file = openSync(path, O_RDONLY);
  try {
    const buffer = Buffer.allocUnsafeSlow(FLUSH_CHARACTERS);
    let rest: Buffer = Buffer.alloc(0);
    for (let read = readSync(file, buffer); read > 0; read = readSync(file, buffer)) {
      const bytes = Buffer.concat([rest, buffer.subarray(0, read)]);
      let at = 0;
      for (let end = bytes.indexOf(10, at); end !== -1; end = bytes.indexOf(10, at)) {
        yield JSON.parse(bytes.toString("utf8", at, end)) as Line;
        at = end + 1;
      }
      rest = bytes.subarray(at);
      if (rest.length > FLUSH_CHARACTERS) throw new Error(NOT_WELL_MADE);
    }
    if (rest.length > 0) throw new Error("the list of the drive's entries is incomplete");
  } finally {
    closeSync(file);
  }
}

function syncTree(directory: string): void {
  const opened = openSync(directory, O_RDONLY | O_DIRECTORY);
  try {
    syncFileSystem(opened);
  } finally {
    closeSync(opened);
  }
}
