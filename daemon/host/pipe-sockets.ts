/** Joins two sockets into one connection. */
import type { Socket } from "node:net";

/** Forwards data in both directions; each direction may end separately, and a failure of either socket closes both. */
export function pipeSockets(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on("error", () => to.destroy());
    from.on("close", () => to.destroy());
    from.pipe(to);
  }
}
