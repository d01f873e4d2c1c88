/** Owns two sockets that are one way. */
import type { Socket } from "node:net";

/** What comes by one leaves by the other; each may end for itself, and with either's failure both are gone. */
export function joinSockets(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on("error", () => to.destroy());
    from.on("close", () => to.destroy());
    from.pipe(to);
  }
}
