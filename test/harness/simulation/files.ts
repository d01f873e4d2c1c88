/**
 * Files of a simulated host: each call is done immediately, and resolves after a moment of virtual time, in which the process can be killed. The
 * part of node:fs/promises that a daemon uses, the removal of trees, and copies of drives, which have no files here.
 */
import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { currentWorld } from "./world.ts";

/** Resolves once the disk has done it. */
function heard<T>(value: T): Promise<T> {
  const world = currentWorld();
  if (!world) return Promise.resolve(value);
  const { promise, resolve } = Promise.withResolvers<T>();
  world.after(0.02 + world.chance.next() * 0.4, world.current, () => resolve(value));
  return promise;
}

/** A call of node:fs as a promise. */
const promised =
  <Given extends unknown[], Result>(call: (...given: Given) => Result) =>
  async (...given: Given): Promise<Result> =>
    await heard(call(...given));

class Handle {
  readonly fd: number;
  #isClosed = false;

  constructor(fd: number) {
    this.fd = fd;
  }

  write = promised((bytes: string | Uint8Array, offset?: number, length?: number, position?: number) => {
    if (typeof bytes === "string") return { bytesWritten: fs.writeSync(this.fd, bytes) };
    return { bytesWritten: fs.writeSync(this.fd, bytes, offset, length, position) };
  });
  read = promised((into: Uint8Array, offset: number, length: number, position: number) => ({
    bytesRead: fs.readSync(this.fd, into, offset, length, position),
  }));
  stat = promised(() => fs.fstatSync(this.fd));
  truncate = promised((size: number) => fs.ftruncateSync(this.fd, size));
  chmod = promised((mode: number) => fs.fchmodSync(this.fd, mode));
  sync = promised(() => {});
  datasync = promised(() => {});
  close = promised(() => this.closeNow());

  closeNow(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    fs.closeSync(this.fd);
  }
}

export type FileHandle = Handle;

export const open = promised((path: string, flags?: string | number, mode?: number) => {
  const handle = new Handle(fs.openSync(path, flags ?? "r", mode));
  currentWorld()?.current?.onDeath(() => handle.closeNow());
  return handle;
});
export const mkdir = promised(fs.mkdirSync);
export const readdir = promised((path: string) => fs.readdirSync(path).sort());
export const readFile = promised((path: string) => fs.readFileSync(path, "utf8"));
export const writeFile = promised(fs.writeFileSync);
export const rename = promised(fs.renameSync);
export const rm = promised(fs.rmSync);
export const rmdir = promised(fs.rmdirSync);
export const unlink = promised(fs.unlinkSync);
export const stat = promised(fs.statSync);
export const lstat = promised(fs.lstatSync);
export const link = promised(fs.linkSync);
export const symlink = promised(fs.symlinkSync);
export const chmod = promised(fs.chmodSync);
export const chown = promised(() => {});
export const statfs = promised(fs.statfsSync);
export const mkdtemp = promised(fs.mkdtempSync);
export const readlink = promised(fs.readlinkSync);
export const copyFile = promised(fs.copyFileSync);
export const lchown = promised(() => {});
export const access = promised(fs.accessSync);
export const realpath = promised(fs.realpathSync);
export const cp = promised(fs.cpSync);

export const syncDirectory = promised((_directory: string) => {});
export const eraseDirectory = promised((directory: string) => {
  fs.rmSync(directory, { recursive: true, force: true });
});

export class DriveCopier {
  copy = promised((_drive: string, store: string) => {
    fs.mkdirSync(join(store, "contents", "00"), { recursive: true });
    fs.writeFileSync(join(store, "entries.ndjson"), "");
    return NOTHING;
  });
  complete = promised(() => NOTHING);
  sync = promised(() => {});
  restore = promised(({ drive }: { drive: string }) => {
    fs.mkdirSync(dirname(drive), { recursive: true });
    return NOTHING;
  });
  giveUp(): void {}
  async [Symbol.asyncDispose](): Promise<void> {}
}

const NOTHING = { bytes: 0, entries: 0 };

/** Lines of a file that was opened by `createReadStream`. */
export const createReadStream = (path: string) => path;
export async function* createInterface({ input }: { input: string }): AsyncGenerator<string> {
  const text = await readFile(input);
  yield* text.trimEnd().split("\n");
}

export const findData = promised((_file: number, offset: number) => offset);
export const findHole = promised((file: number, _offset: number) => fs.fstatSync(file).size);
