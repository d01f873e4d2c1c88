/**
 * A guest-writable directory, held open, and all host operations in it.
 *
 * Guest-made links are followed as long as they stay beneath; a link that leaves is EXDEV, and so is every absolute one, even if inside the
 * guest it would lead back (/mnt/drive/x). Nothing is opened before it is known to be a regular file or a directory: opening a FIFO may
 * block forever, opening a device may have any effect.
 *
 * Paths are walked once, by openat2. Later steps use a name in a descriptor of the directory that was found, so that a concurrent rename by
 * a guest cannot redirect them. /proc/self/fd/N/name is that name in descriptor N: through it node's own calls do the work of libc's *at
 * calls, on another thread.
 */
import { closeSync, constants, fchmodSync, fchownSync, openSync, promises, readlinkSync } from "node:fs";
import { errnoOf } from "../../core/service-error.ts";
import { driveRootOf } from "../isolation/directories.ts";
import { sync } from "./async-calls.ts";
import { type Facts, readFacts, readStatus, readUse, type Status, type Use } from "./facts.ts";
import { ifThere, isGone } from "./gone.ts";
import {
  getdents,
  O_CLOEXEC,
  O_PATH,
  openat2,
  RESOLVE_BENEATH,
  RESOLVE_NO_MAGICLINKS,
  RESOLVE_NO_SYMLINKS,
  renameNoReplace,
  SystemError,
  seekTo,
} from "./libc.ts";
import { GUEST_ROOT, OpenFile } from "./open-file.ts";
import { fromBytes, type RawPath } from "./raw-path.ts";

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;
const ALWAYS = O_CLOEXEC | O_NONBLOCK;
const DIRECTORY = O_RDONLY | O_DIRECTORY | ALWAYS;
const FOLLOWING = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
const PLAIN = FOLLOWING | RESOLVE_NO_SYMLINKS;

export class Beneath implements Disposable {
  readonly #descriptor: number;
  /** Host user of the guests' root, which owns everything that is made here. */
  readonly #root: number;

  private constructor(descriptor: number, root: number) {
    this.#descriptor = descriptor;
    this.#root = root;
  }

  /** A room's drive; its parent directory is the host's own, which is trusted. Throws ENOENT. */
  static open(directory: string): Beneath {
    // First the step that may fail: a descriptor opened before would leak.
    const root = driveRootOf(directory);
    return new Beneath(openSync(directory, DIRECTORY), root);
  }

  /** The directory at `path`. Throws ENOENT, ENOTDIR, EXDEV, ELOOP. */
  directory(path: RawPath): Beneath {
    return new Beneath(openat2(this.#descriptor, path, DIRECTORY, 0, FOLLOWING), this.#root);
  }

  /** The directory previously found at `path`, without links on the way; null if it no longer exists. */
  plainDirectory(path: RawPath): Beneath | null {
    try {
      return new Beneath(openat2(this.#descriptor, path, DIRECTORY, 0, PLAIN), this.#root);
    } catch (error) {
      // EXDEV: the directory was moved out of this one during the lookup.
      if (isGone(error) || errnoOf(error) === "EXDEV") return null;
      throw error;
    }
  }

  /** The regular file at `path`. Throws EISDIR for a directory and ENXIO for a FIFO, socket or device. */
  file(path: RawPath, access: "read" | "append"): OpenFile {
    const found = openat2(this.#descriptor, path, O_PATH | O_CLOEXEC, 0, FOLLOWING);
    try {
      const facts = readFacts(found);
      if (facts.type === "directory") throw new SystemError("EISDIR", "open");
      if (facts.type !== "file") throw new SystemError("ENXIO", "open");
      const flags = (access === "read" ? O_RDONLY : O_RDWR | O_APPEND) | ALWAYS;
      return new OpenFile(openSync(`/proc/self/fd/${found}`, flags), facts, this.#root);
    } finally {
      closeSync(found);
    }
  }

  /**
   * Status of the entry with this name, links not followed, with a read descriptor for a regular file, which the caller closes; null if
   * there is no entry.
   */
  plainEntry(name: RawPath): { status: Status; descriptor: number | null } | null {
    const found = ifThere(() => openat2(this.#descriptor, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, FOLLOWING));
    if (found === null) return null;
    try {
      const status = readStatus(found);
      const descriptor = status.type === "file" ? openSync(`/proc/self/fd/${found}`, O_RDONLY | ALWAYS) : null;
      return { status, descriptor };
    } finally {
      closeSync(found);
    }
  }

  /** The same without opening it. */
  status(name: RawPath): Status | null {
    return ifThere(() => readStatus(this.#descriptor, name));
  }

  ownStatus(): Status {
    return readStatus(this.#descriptor);
  }

  /** Target of a symbolic link. */
  linkTargetNow(name: RawPath): RawPath {
    return fromBytes(readlinkSync(this.#at(name), { encoding: "buffer" }));
  }

  /** Creates a file under an unused name. Throws EEXIST. */
  newFile(name: RawPath): OpenFile {
    const flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | ALWAYS;
    const descriptor = openat2(this.#descriptor, name, flags, 0o600, PLAIN);
    return new OpenFile(descriptor, readFacts(descriptor), this.#root);
  }

  /** Facts of the entry with this name, links not followed; null if there is no entry. */
  facts(name: RawPath): Facts | null {
    try {
      return readFacts(this.#descriptor, name);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return null;
      throw error;
    }
  }

  /** The facts of an entry that disk accounting needs; null if it does not exist. */
  use(name: RawPath): Use | null {
    try {
      return readUse(this.#descriptor, name);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return null;
      throw error;
    }
  }

  /** Facts of the directory itself. */
  ownFacts(): Facts {
    return readFacts(this.#descriptor);
  }

  get inode(): bigint {
    return readUse(this.#descriptor).inode;
  }

  /**
   * The current parent directory: after a guest's move it differs from the earlier one, and above the drive's root it is the host's own.
   * Verify its inode before any operation in it.
   */
  above(): Beneath {
    return new Beneath(openat2(this.#descriptor, ".." as RawPath, DIRECTORY, 0, RESOLVE_NO_SYMLINKS), this.#root);
  }

  async linkTarget(name: RawPath): Promise<RawPath> {
    return fromBytes(await promises.readlink(this.#at(name), { encoding: "buffer" }));
  }

  /** Throws EEXIST. */
  async makeDirectory(name: RawPath, mode: number, owner = GUEST_ROOT): Promise<void> {
    await promises.mkdir(this.#at(name), 0o700);
    using made = this.plainDirectory(name);
    made?.own(mode, owner);
  }

  /** Gives the directory to a user of the guests, as directories of their own processes are, and sets its mode. */
  own(mode: number, { uid, gid } = GUEST_ROOT): void {
    if (process.geteuid?.() === 0) fchownSync(this.#descriptor, this.#root + uid, this.#root + gid);
    fchmodSync(this.#descriptor, mode);
  }

  /** Throws EISDIR for a directory. */
  unlink(name: RawPath): Promise<void> {
    return promises.unlink(this.#at(name));
  }

  /** Throws ENOTEMPTY, ENOTDIR. */
  removeDirectory(name: RawPath): Promise<void> {
    return promises.rmdir(this.#at(name));
  }

  /** Renames within the drive. Throws EEXIST when the name is taken and may not be replaced. */
  async rename(name: RawPath, to: Beneath, newName: RawPath, taken: "replace" | "refuse"): Promise<void> {
    // Replacing may free a large file's blocks, so it waits on another thread.
    if (taken === "replace") await promises.rename(this.#at(name), to.#at(newName));
    else renameNoReplace(this.#descriptor, name, to.#descriptor, newName);
  }

  /** Makes the changes in this directory survive a crash of the host. */
  sync(): Promise<void> {
    return sync(this.#descriptor);
  }

  /**
   * Fills the buffer with entries from the last read position, and returns their length in bytes; 0 at the end. Throws ENOENT if the
   * directory was removed.
   */
  readInto(buffer: Buffer): number {
    return getdents(this.#descriptor, buffer);
  }

  /** Continues reading at an entry's `next`. */
  seek(next: bigint): void {
    seekTo(this.#descriptor, next);
  }

  /** A descriptor of the directory for reading its entries; the reader closes it. */
  reader(): number {
    return openat2(this.#descriptor, "." as RawPath, DIRECTORY, 0, PLAIN);
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }

  #at(name: RawPath): Buffer {
    return Buffer.from(`/proc/self/fd/${this.#descriptor}/${name}`, "latin1");
  }
}
