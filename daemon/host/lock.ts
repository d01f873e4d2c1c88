/** Owns locks that keep a second process out of a directory, for as long as the first one lives. */
import { dlopen } from "bun:ffi";
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";

const LOCK_EX = 2;
const LOCK_NB = 4;

const { symbols: libc } = dlopen("libc.so.6", { flock: { args: ["i32", "i32"], returns: "i32" } });

/** Somebody else has the lock. */
export class LockedError extends Error {
  override name = "LockedError";
  /** Its pid, as it wrote it. */
  readonly holder: string;
  constructor(holder: string, configKey: string) {
    super(`another roomd (pid ${holder}) runs with this ${configKey}; stop it, or choose another directory`);
    this.holder = holder;
  }
}

/** Takes the lock and writes our pid into it. Throws LockedError when another process holds it. Its release is the process's end. */
export function takeLock(file: string, configKey: string): () => void {
  const fd = openSync(file, "a+", 0o600);
  if (libc.flock(fd, LOCK_EX | LOCK_NB) !== 0) {
    const holder = readFileSync(file, "utf8").trim();
    closeSync(fd);
    throw new LockedError(holder, configKey);
  }
  ftruncateSync(fd, 0);
  writeSync(fd, String(process.pid));
  return () => closeSync(fd);
}
