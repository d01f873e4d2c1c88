/** Owns the end of a client's connection: what was written may leave for a moment, what comes in is thrown away. */
import type { Socket } from "node:net";
import { startTimer, stopTimer } from "../../core/clock.ts";

/** A client that does not read in this time does not hear why. */
const LAST_WORDS_MS = 500;

/** Ends a connection, also of a client that does not read. */
export function endSocket(socket: Socket): void {
  // ssh2 carries out what comes in for as long as it hears of it. Left unread, it would take the last words with it.
  socket.removeAllListeners("data");
  socket.resume();
  const deadline = startTimer(() => socket.destroy(), LAST_WORDS_MS);
  socket.once("close", () => stopTimer(deadline));
  socket.destroySoon();
}
