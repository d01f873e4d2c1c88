/**
 * A daemon's changes to its data_dir as strace records them, SQLite's and the runtime's in one order, and the state that remains after a
 * power loss:
 *
 *     synced bytes          kept, if the write came before the sync and no earlier sync of it has failed
 *     unsynced writes       a part of them, in any order, each whole or torn at 512 bytes
 *     names                 a prefix of their changes, at least as far as a sync of the directory
 *     a sync that fails     the unsynced writes of the file are lost, and a later sync does not bring them back (fsync(2))
 *
 * The index of SQLite's log is left out: it is memory of processes.
 */
import {
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { BINARY } from "../daemon.ts";
import { Chance } from "../random.ts";

const SECTOR_BYTES = 512;
/** One of this many unsynced writes is torn. */
const TORN_EACH = 8;
const CALLS = [
  "open,openat,openat2,creat",
  "write,pwrite64,writev,pwritev,ftruncate,truncate,copy_file_range",
  "rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat",
  "fsync,fdatasync,syncfs,execve",
].join(",");
/** Left out of states: they are re-created, and large, or are not on a disk. */
const LEFT_OUT = ["reserve", "roomd.db-shm", "daemon.lock", "templates"];

/** The daemon's program, which runs under DISK_RECORDER while that is set. */
export const RECORDED_PROGRAM: readonly [string, ...string[]] = [
  "/bin/sh",
  "-c",
  'exec $DISK_RECORDER "$0" "$@"',
  BINARY,
];

export interface Recorder {
  /** File of the recording. */
  to: string;
  /** Records calls on these paths only. */
  paths?: readonly string[];
  /** Records these calls only; a RecordedDisk needs all of them. */
  calls?: string;
  /** Faults: `fsync,fdatasync:error=EIO:when=3`. */
  inject?: readonly string[];
}

/** Value of DISK_RECORDER. */
export function recorder({ to, paths = [], calls = CALLS, inject = [] }: Recorder): string {
  const faults = inject.flatMap((fault) => ["-e", `inject=${fault}`]);
  const bytes = ["-xx", "-s", "4000000"];
  // The daemon stays the child of the test, and gets its signals.
  const words = ["strace", "-D", "-f", "-q", "-ttt", "-y", ...bytes, "--seccomp-bpf", "-e", `trace=${calls}`];
  return [...words, ...faults, ...paths.flatMap((path) => ["-P", path]), "-o", to].join(" ");
}

/** Part of a file's contents: bytes at an offset, or a new length. */
interface Change {
  seq: number;
  offset: number;
  bytes: Buffer | null;
  length: number;
  /** Number of the change that made it durable, or lost it. */
  syncedAt: number;
  lostAt: number;
}

class Inode {
  readonly changes: Change[] = [];
  readonly initial: string | null;
  size: number;

  constructor(initial: string | null = null, size = 0) {
    this.initial = initial;
    this.size = size;
  }
}

type Entry = Inode | "directory" | { target: string };

interface NameChange {
  seq: number;
  syncedAt: number;
  directories: string[];
  apply(names: Map<string, Entry>): void;
}

interface OpenFile {
  path: string;
  inode: Inode | null;
  offset: number;
  appends: boolean;
}

export class RecordedDisk {
  readonly #root: string;
  readonly #initial = new Map<string, Entry>();
  readonly #names = new Map<string, Entry>();
  readonly #nameChanges: NameChange[] = [];
  #inodes: Inode[] = [];
  readonly #files = new Map<number, OpenFile>();
  readonly #children = new Set<string>();
  /** Seconds since the epoch at which each change was complete. */
  readonly times: number[] = [];
  /** Changes that were syncs. */
  readonly syncs: number[] = [];
  /** Times of syncs that failed. */
  readonly failures: number[] = [];

  /** `root` is the data_dir that was recorded, `snapshot` a copy of it from before. */
  constructor(root: string, snapshot: string) {
    this.#root = root;
    for (const path of walk(snapshot)) {
      const entry = entryOf(join(snapshot, path));
      if (entry instanceof Inode) this.#inodes.push(entry);
      this.#initial.set(path, entry);
      this.#names.set(path, entry);
    }
  }

  get length(): number {
    return this.times.length;
  }

  /** Reads a recording, and continues from the state of the previous recording. */
  read(recording: string): void {
    this.#files.clear();
    const pending = new Map<string, { call: string; seq: number }>();
    let first: string | null = null;
    for (const line of readFileSync(recording, "latin1").split("\n")) {
      const [, pid = "", time = "", text = ""] = /^(\d+)\s+(\d+\.\d+) (.*)$/s.exec(line) ?? [];
      if (pid === "") continue;
      first ??= pid;
      let call = text;
      let startSeq = this.length;
      if (text.endsWith("<unfinished ...>")) {
        pending.set(pid, { call: text.slice(0, -"<unfinished ...>".length), seq: this.length });
        continue;
      }
      if (text.startsWith("<...")) {
        const before = pending.get(pid);
        pending.delete(pid);
        if (!before) continue;
        call = before.call + text.slice(text.indexOf(" resumed>") + " resumed>".length);
        startSeq = before.seq;
      }
      if (call.startsWith("execve(") && pid !== first) this.#children.add(pid);
      if (!this.#children.has(pid)) this.#take(call, Number(time), startSeq);
    }
  }

  #take(call: string, time: number, startSeq: number): void {
    const [, name = "", rest = ""] = /^(\w+)\((.*)$/s.exec(call) ?? [];
    const end = rest.lastIndexOf(") = ");
    if (end < 0) return;
    const [args, result] = [rest.slice(0, end), rest.slice(end + ") = ".length)];
    const value = Number.parseInt(result, 10);
    const isSync = name === "fsync" || name === "fdatasync" || name === "syncfs";
    if (value < 0 && !(isSync && result.includes("EIO"))) return;
    const changes = this.length;
    const changed = (seq = this.length) => {
      this.times.push(time);
      return seq;
    };
    const paths = () => pathsIn(args).map(({ at, path }) => this.#resolve(at, path));
    switch (name) {
      case "open":
      case "creat":
      case "openat":
      case "openat2": {
        const [path = null] = paths();
        const opened = path === null ? null : (this.#relative(annotation(result) ?? path) ?? null);
        this.#open(value, opened, args, changed);
        break;
      }
      case "write":
      case "writev":
      case "pwrite64":
      case "pwritev":
        this.#write(name, args, value, changed);
        break;
      case "copy_file_range":
        throw new Error(`not recorded with its bytes: ${call.slice(0, 200)}`);
      case "truncate":
      case "ftruncate": {
        const inode = name === "ftruncate" ? this.#fileOf(args)?.inode : this.#inodeAt(paths()[0]);
        if (inode) truncated(inode, Number(args.slice(args.lastIndexOf(",") + 1)), changed());
        break;
      }
      case "mkdir":
      case "mkdirat":
        this.#named(paths(), changed, (names, [made]) => made && names.set(made, "directory"));
        break;
      case "symlink":
      case "symlinkat": {
        const [target, link] = pathsIn(args);
        const made = link && this.#relative(this.#resolve(link.at, link.path));
        if (made && target) this.#nameChange([made], changed, (names) => names.set(made, { target: target.path }));
        break;
      }
      case "unlink":
      case "unlinkat":
      case "rmdir":
        this.#named(paths(), changed, (names, [removed]) => removed && names.delete(removed));
        break;
      case "link":
      case "linkat":
        this.#named(paths(), changed, (names, [from, to]) => {
          const entry = from && names.get(from);
          if (entry && to) names.set(to, entry);
        });
        break;
      case "rename":
      case "renameat":
      case "renameat2":
        this.#named(paths(), changed, (names, [from, to]) => from && move(names, from, to));
        break;
      default:
        if (isSync) this.#sync(args, name === "syncfs", value < 0, startSeq, changed);
    }
    if (isSync && this.length > changes) this.syncs.push(changes);
    if (isSync && value < 0) this.failures.push(time);
  }

  #open(fd: number, path: string | null, args: string, changed: () => number): void {
    if (path === null) return;
    let inode = this.#inodeAt(join(this.#root, path));
    if (!inode && this.#names.get(path) === undefined && args.includes("O_CREAT")) {
      const made = new Inode();
      this.#inodes.push(made);
      inode = made;
      this.#nameChange([path], changed, (names) => names.set(path, made));
    }
    if (inode && args.includes("O_TRUNC") && inode.size > 0) truncated(inode, 0, changed());
    this.#files.set(fd, { path, inode, offset: 0, appends: args.includes("O_APPEND") });
  }

  /**
   * The file of a call's first descriptor; null if it is not a part of states. Calls of several threads are recorded in another order than they
   * were made, so the path that strace adds is right, and a number may be that of a file closed since.
   */
  #fileOf(args: string): OpenFile | null {
    const path = annotation(args);
    const relative = path === null ? null : this.#relative(path);
    if (path === null || relative === null) return null;
    const known = this.#files.get(Number.parseInt(args, 10)) ?? null;
    const inode = isRemoved(args) ? null : this.#inodeAt(path);
    if (inode === null || known?.inode === inode) return known;
    return { path: relative, inode, offset: inode.size, appends: true };
  }

  #write(name: string, args: string, count: number, changed: () => number): void {
    const file = this.#fileOf(args);
    if (!file?.inode || count <= 0) return;
    const bytes = Buffer.concat(texts(args)).subarray(0, count);
    if (bytes.length < count) throw new Error(`the recording lacks bytes of ${name} to ${file.path}`);
    const isAt = name.startsWith("p");
    const offset = isAt ? Number(args.slice(args.lastIndexOf(",") + 1)) : file.appends ? file.inode.size : file.offset;
    if (!isAt) file.offset = offset + count;
    file.inode.size = Math.max(file.inode.size, offset + count);
    file.inode.changes.push(change(changed(), offset, bytes, count));
  }

  #sync(args: string, isAll: boolean, fails: boolean, startSeq: number, changed: () => number): void {
    const path = annotation(args);
    const relative = path === null ? null : this.#relative(path);
    if (relative === null || relative === undefined) return;
    const inode = this.#fileOf(args)?.inode;
    const seq = changed();
    for (const each of isAll ? this.#inodes : inode ? [inode] : []) {
      for (const made of each.changes) {
        if (made.syncedAt !== Infinity || made.lostAt !== Infinity || made.seq >= startSeq) continue;
        if (fails) made.lostAt = seq;
        else made.syncedAt = seq;
      }
    }
    if (fails) return;
    for (const made of this.#nameChanges) {
      const isCovered = isAll || made.directories.includes(relative);
      if (isCovered && made.seq < startSeq) made.syncedAt = Math.min(made.syncedAt, seq);
    }
  }

  #named(
    paths: string[],
    changed: () => number,
    apply: (names: Map<string, Entry>, paths: (string | null)[]) => unknown,
  ): void {
    const relative = paths.map((path) => this.#relative(path));
    if (relative.some((path) => path === null)) return;
    this.#nameChange(relative as string[], changed, (names) => apply(names, relative));
  }

  #nameChange(paths: string[], changed: () => number, apply: (names: Map<string, Entry>) => unknown): void {
    const directories = paths.map((path) => (dirname(path) === "." ? "" : dirname(path)));
    this.#nameChanges.push({ seq: changed(), syncedAt: Infinity, directories, apply: (names) => void apply(names) });
    apply(this.#names);
  }

  #inodeAt(path: string | undefined): Inode | null {
    const relative = path === undefined ? null : this.#relative(path);
    const entry = relative === null ? null : this.#names.get(relative);
    return entry instanceof Inode ? entry : null;
  }

  #resolve(at: string | null, path: string): string {
    const [, fd = "", below = ""] = /^\/proc\/self\/fd\/(\d+)(.*)$/.exec(path) ?? [];
    const opened = fd === "" ? null : this.#files.get(Number(fd));
    if (opened) return join(this.#root, opened.path, below);
    return resolve(at ?? "/", path);
  }

  /** Below data_dir, and a part of states; "" is data_dir itself. */
  #relative(path: string): string | null {
    if (path === this.#root) return "";
    if (!path.startsWith(`${this.#root}/`)) return null;
    const relative = path.slice(this.#root.length + 1);
    return LEFT_OUT.includes(relative.split("/")[0] ?? "") ? null : relative;
  }

  /** Number of changes of a file's contents. */
  changesOf(path: string): number {
    const entry = this.#names.get(path);
    return entry instanceof Inode ? entry.changes.length : 0;
  }

  /** The minimum that remains of a file if power is lost at the end of the recording: no unsynced write. Null if it was removed. */
  leastOf(path: string): Buffer | null {
    const entry = this.#names.get(path);
    return entry instanceof Inode ? contentsAfter(entry, this.length, 0, new Chance(0)) : null;
  }

  /** Writes the state of the disk that remains if power is lost after this change. */
  crash(after: number, chance: Chance, into: string): void {
    const names = new Map(this.#initial);
    const made = this.#nameChanges.filter(({ seq }) => seq <= after);
    const synced = made.findLastIndex(({ syncedAt }) => syncedAt <= after) + 1;
    for (const each of made.slice(0, chance.whole(synced, made.length))) each.apply(names);
    const share = keptShare(chance);
    const contents = new Map<Inode, Buffer>();
    mkdirSync(into, { recursive: true, mode: 0o711 });
    for (const path of [...names.keys()].sort()) {
      const entry = names.get(path);
      const to = join(into, path);
      // Its directory's name may be lost, or was removed.
      mkdirSync(dirname(to), { recursive: true });
      if (entry === "directory") mkdirSync(to, { recursive: true, mode: 0o711 });
      else if (entry instanceof Inode) {
        const content = contents.get(entry) ?? contentsAfter(entry, after, share, chance);
        contents.set(entry, content);
        writeFileSync(to, content, { mode: 0o600 });
      } else if (entry) symlinkSync(entry.target, to);
    }
  }
}

function contentsAfter(inode: Inode, after: number, share: number, chance: Chance): Buffer {
  let content = inode.initial === null ? Buffer.alloc(0) : readFileSync(inode.initial);
  let size = content.length;
  const grow = (to: number) => {
    if (to <= content.length) return;
    const larger = Buffer.alloc(Math.max(to, 2 * content.length));
    content.copy(larger, 0, 0, size);
    content = larger;
  };
  for (const { seq, offset, bytes, length, syncedAt, lostAt } of inode.changes) {
    if (seq > after || lostAt <= after) continue;
    let kept: [number, number][] = [[0, length]];
    if (syncedAt > after) {
      if (chance.next() >= share) continue;
      if (bytes) kept = reached(offset, length, chance, SECTOR_BYTES);
    }
    if (bytes === null) {
      grow(length);
      if (length < size) content.fill(0, length, size);
      size = length;
      continue;
    }
    for (const [from, to] of kept) {
      grow(offset + to);
      bytes.copy(content, offset + from, from, to);
      size = Math.max(size, offset + to);
    }
  }
  return content.subarray(0, size);
}

/** Probability that an unsynced write has reached the disk; the same for all writes of a state. */
export const keptShare = (chance: Chance): number => chance.pick([0, 0.5, 0.5, 0.9, 1]);

/** Parts of a write that have reached the disk: all of it, or some of its sectors. */
export function reached(offset: number, length: number, chance: Chance, sectorBytes: number): [number, number][] {
  if (chance.next() >= 1 / TORN_EACH) return [[0, length]];
  const pieces: [number, number][] = [];
  for (let from = 0; from < length; ) {
    const to = Math.min(length, from + sectorBytes - ((offset + from) % sectorBytes));
    if (chance.next() < 0.5) pieces.push([from, to]);
    from = to;
  }
  return pieces;
}

const change = (seq: number, offset: number, bytes: Buffer | null, length: number): Change => ({
  seq,
  offset,
  bytes,
  length,
  syncedAt: Infinity,
  lostAt: Infinity,
});

function truncated(inode: Inode, length: number, seq: number): void {
  inode.size = length;
  inode.changes.push(change(seq, 0, null, length));
}

function move(names: Map<string, Entry>, from: string, to: string | null | undefined): void {
  for (const [path, entry] of [...names]) {
    if (path !== from && !path.startsWith(`${from}/`)) continue;
    names.delete(path);
    if (to) names.set(to + path.slice(from.length), entry);
  }
}

/** The path of the first descriptor in a text, as strace -y adds it. */
function annotation(text: string): string | null {
  const [, path] = /^-?\w+<([^>]*)>/.exec(text.trim()) ?? [];
  return path === undefined
    ? null
    : decoded(path)
        .toString()
        .replace(/ \(deleted\)$/, "");
}

/** Whether the file of a call's first descriptor has no name any more. */
const isRemoved = (args: string): boolean => /^-?\w+<[^>]*>\(deleted\)/.test(args.trim());

/** The paths that a call names, each with the directory that it is relative to. */
function pathsIn(args: string): { at: string | null; path: string }[] {
  const named = /(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:\\x[0-9a-f]{2})*)"/g;
  return [...args.matchAll(named)].map(([, at, path = ""]) => ({
    at: at === undefined ? null : decoded(at).toString(),
    path: decoded(path).toString(),
  }));
}

const texts = (args: string) => [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, text = ""]) => decoded(text));

const decoded = (text: string) =>
  text.includes("\\x") ? Buffer.from(text.replaceAll("\\x", ""), "hex") : Buffer.from(text, "latin1");

function* walk(root: string, below = ""): Generator<string> {
  for (const { name, isDirectory } of readdirSync(join(root, below), { withFileTypes: true }).map((entry) => ({
    name: entry.name,
    isDirectory: entry.isDirectory(),
  }))) {
    if (below === "" && LEFT_OUT.includes(name)) continue;
    const path = join(below, name);
    yield path;
    if (isDirectory) yield* walk(root, path);
  }
}

function entryOf(path: string): Entry {
  const found = lstatSync(path);
  if (found.isDirectory()) return "directory";
  if (found.isSymbolicLink()) return { target: readlinkSync(path) };
  return new Inode(path, found.size);
}

/** A copy of a data_dir that no daemon has open. */
export function snapshotOf(dataDir: string, to: string): string {
  cpSync(dataDir, to, { recursive: true, verbatimSymlinks: true });
  return to;
}
