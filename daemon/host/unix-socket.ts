/**
 * Owns connecting to the socket of a process that has just been started. What its handlers throw goes to the `error` that each
 * must have: without one it would be an error of the whole daemon, caused by whoever writes to the socket.
 */
import { existsSync } from "node:fs";
import type { Socket, SocketHandler } from "bun";
import { DeadlineError } from "../core/published.ts";

/** How often to look whether the process has made its socket: well under what starting it takes. */
const LOOK_EVERY_MS = 2;

export type GuardedHandlers = SocketHandler<undefined> & Required<Pick<SocketHandler<undefined>, "error">>;

/** Connects once the socket takes connections. Throws when its process ends first (`gone`), or at the deadline. */
export async function connectWhenThere(
  path: string,
  deadlineMs: number,
  gone: Promise<unknown>,
  handlers: GuardedHandlers,
): Promise<Socket<undefined>> {
  let ended: string | null = null;
  gone.then((how) => {
    ended = String(how);
  });
  const deadline = performance.now() + deadlineMs;
  while (true) {
    if (existsSync(path)) {
      try {
        return await Bun.connect({ unix: path, socket: handlers });
      } catch (error) {
        // Bound, but not listening yet.
        if (performance.now() > deadline) throw error;
      }
    }
    if (ended !== null) throw new Error(`the process of ${path} has ended: ${ended}`);
    if (performance.now() > deadline) throw new DeadlineError(`${path} was not there within ${deadlineMs} ms`);
    await Bun.sleep(LOOK_EVERY_MS);
  }
}

/** Resolves once the socket exists. Throws when its process ends first, or at the deadline. */
export async function socketThere(path: string, deadlineMs: number, gone: Promise<unknown>): Promise<void> {
  let ended: string | null = null;
  gone.then((how) => {
    ended = String(how);
  });
  const deadline = performance.now() + deadlineMs;
  while (!existsSync(path)) {
    if (ended !== null) throw new Error(`the process of ${path} has ended: ${ended}`);
    if (performance.now() > deadline) throw new DeadlineError(`${path} was not there within ${deadlineMs} ms`);
    await Bun.sleep(LOOK_EVERY_MS);
  }
}
