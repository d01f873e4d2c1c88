/**
 * Connects to the socket of a process that has just been started. Exceptions of its handlers go to the `error` handler that each must have:
 * without it they would be errors of the whole daemon, caused by the process that writes to the socket.
 */
import { closeSync, constants, existsSync, fstatSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { Socket, SocketHandler } from "bun";
import { monotonicMs, sleep } from "../core/clock.ts";
import { DeadlineError } from "../core/concurrency/published.ts";
import { ifThere } from "./files/gone.ts";

/** Poll interval for the process's socket: well under the time of its start. */
const LOOK_EVERY_MS = 2;

export type GuardedHandlers = SocketHandler<undefined> & Required<Pick<SocketHandler<undefined>, "error">>;

/** Flag of open(2): the entry itself, of any type (asm-generic/fcntl.h). */
const O_PATH = 0o10000000;

/**
 * Connects once the socket accepts connections. Throws if its process ends first (`gone`), at the deadline, or if the entry is not a socket
 * of the directory's owner: a process that a guest has compromised may put a link to another's socket there.
 */
export async function connectWhenThere(
  path: string,
  deadlineMs: number,
  processEnd: Promise<unknown>,
  handlers: GuardedHandlers,
): Promise<Socket<undefined>> {
  let ended: string | null = null;
  processEnd.then((how) => {
    ended = String(how);
  });
  const deadline = monotonicMs() + deadlineMs;
  while (true) {
    const entry = ifThere(() => openSync(path, O_PATH | constants.O_NOFOLLOW));
    if (entry !== null) {
      try {
        requireOwnSocket(path, entry);
        // Connects to the checked inode, even if its name is another's by now.
        return await Bun.connect({ unix: `/proc/self/fd/${entry}`, socket: handlers });
      } catch (error) {
        // Bound, but not listening yet.
        if (monotonicMs() > deadline || error instanceof NotOwnSocket) throw error;
      } finally {
        closeSync(entry);
      }
    }
    if (ended !== null) throw new Error(`the process of ${path} has ended: ${ended}`);
    if (monotonicMs() > deadline) throw new DeadlineError(`${path} was not there within ${deadlineMs} ms`);
    await sleep(LOOK_EVERY_MS);
  }
}

export class NotOwnSocket extends Error {}

function requireOwnSocket(path: string, entry: number): void {
  const found = fstatSync(entry);
  if (found.isSocket() && found.uid === statSync(dirname(path)).uid) return;
  throw new NotOwnSocket(`${path} is not a socket of its directory's owner`);
}

/** Resolves once the socket exists. Throws when its process ends first, or at the deadline. */
export async function socketThere(path: string, deadlineMs: number, processEnd: Promise<unknown>): Promise<void> {
  let ended: string | null = null;
  processEnd.then((how) => {
    ended = String(how);
  });
  const deadline = monotonicMs() + deadlineMs;
  while (!existsSync(path)) {
    if (ended !== null) throw new Error(`the process of ${path} has ended: ${ended}`);
    if (monotonicMs() > deadline) throw new DeadlineError(`${path} was not there within ${deadlineMs} ms`);
    await sleep(LOOK_EVERY_MS);
  }
}
