/** Locks that keep a second process out of a directory for the first one's lifetime, or make it wait. */
import { dlopen } from "bun:ffi";
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";

const LOCK_EX = 2;
const LOCK_NB = 4;

const { symbols: libc } = dlopen("libc.so.6", { flock: { args: ["i32", "i32"], returns: "i32" } });

/** Another process holds the lock. */
export class LockedError extends Error {
  override name = "LockedError";
  /** The holder's pid, as written by the holder. */
  readonly holder: string;
  constructor(holder: string, configKey: string) {
    super(`another roomd (pid ${holder}) runs with this ${configKey}; stop it, or choose another directory`);
    this.holder = holder;
  }
}

/**
 * Takes the lock and writes this process's pid into the file. Throws LockedError when another process holds the lock. The process's end
 * releases it.
 */
export function takeLock(file: string, configKey: string): () => void {
  const { fd, holder, release } = tryLock(file);
  if (holder !== null) {
    release();
    throw new LockedError(holder, configKey);
  }
  signLock(fd);
  return release;
}

/** Takes the lock once no other process holds it; `onWait` gets the holder's pid. */
export async function lockWhenFree(file: string, onWait: (holder: string) => void): Promise<() => void> {
  const { fd, holder, release } = tryLock(file);
  if (holder !== null) {
    onWait(holder);
    // A lock belongs to the open file, which flock(1) shares with this process: it takes the lock for both.
    const waiting = Bun.spawn(["flock", "--exclusive", "3"], { stdio: ["ignore", "ignore", "ignore", fd] });
    if ((await waiting.exited) !== 0) {
      release();
      throw new Error(`flock could not lock ${file}`);
    }
  }
  signLock(fd);
  return release;
}

/** `holder` is the pid of the process with the lock; null: this process. */
function tryLock(file: string): { fd: number; holder: string | null; release: () => void } {
  const fd = openSync(file, "a+", 0o600);
  const isOurs = libc.flock(fd, LOCK_EX | LOCK_NB) === 0;
  return { fd, holder: isOurs ? null : readFileSync(file, "utf8").trim(), release: () => closeSync(fd) };
}

function signLock(fd: number): void {
  ftruncateSync(fd, 0);
  writeSync(fd, String(process.pid));
}

/** Whether another process holds the lock at this moment. */
export function isLocked(file: string): boolean {
  const { holder, release } = tryLock(file);
  release();
  return holder !== null;
}
