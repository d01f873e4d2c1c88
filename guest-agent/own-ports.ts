/**
 * Source ports of the agent's connections to the host. Binding a reserved port takes CAP_NET_BIND_SERVICE, so it proves to the host that no
 * unprivileged process dialled. Each connection uses another one: the kernel holds the port of a closed connection for some seconds.
 */
import { Errno, SystemError } from "./libc.ts";

/** Reserved ports that the host does not use: on a vsock loopback, as in tests, both ends belong to one kernel. */
const PORTS = { first: 512, count: 504 } as const;

export class OwnPorts {
  #turn = 0;

  /** Calls `begin` with the next free port. Throws what `begin` throws, EADDRINUSE only if all are taken. */
  use<T>(begin: (port: number) => T): T {
    for (let tries = 1; ; tries++) {
      const port = PORTS.first + this.#turn;
      this.#turn = (this.#turn + 1) % PORTS.count;
      try {
        return begin(port);
      } catch (error) {
        const isTaken = error instanceof SystemError && error.errno === Errno.EADDRINUSE;
        if (!isTaken || tries === PORTS.count) throw error;
      }
    }
  }
}
