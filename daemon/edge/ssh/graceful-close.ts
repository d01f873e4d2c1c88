/** Graceful end of a client's connection: written data has a short time to be sent, incoming data is discarded. */
import type { Socket } from "node:net";
import { startTimer, stopTimer } from "../../core/clock.ts";

/** A client that does not read within this time does not get the reason. */
const LAST_WORDS_MS = 500;

/** ssh2 processes incoming data as long as it receives it. If data stayed unread, the close would discard the last text. */
export function endSocket(socket: Socket): void {
  // ssh2 executes incoming data as long as it receives it. If it stayed unread, the close would discard the last text.
  socket.removeAllListeners("data");
  socket.resume();
  const deadline = startTimer(() => socket.destroy(), LAST_WORDS_MS);
  socket.once("close", () => stopTimer(deadline));
  socket.destroySoon();
}
