/** Waits for a socket with a slow reader (backpressure). */
import type { Socket } from "node:net";

/** Resolves when the socket accepts more bytes, or is closed. Leaves no listener: a long transfer waits thousands of times. */
export async function drained(socket: Socket): Promise<void> {
  if (socket.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      socket.off("drain", done).off("close", done);
      resolve();
    };
    socket.on("drain", done).on("close", done);
  });
}
