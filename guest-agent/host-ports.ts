/**
 * Selects the host port that the agent dials. Daemons that share the kernel's vsock have one port each: on a port without a listener the
 * connection is refused, and the daemon of another guest closes the connection or proves nothing. Behind a dedicated vsock device, which
 * gives no answer on a port without a listener, only the first port exists.
 */
import { HOST_PORT, HOST_PORTS } from "../shared/agent-protocol/messages.ts";

export class HostPorts {
  #turn = 0;

  get port(): number {
    return HOST_PORT + this.#turn;
  }

  /** The current port is not ours: advances to the next. Returns whether that is the first one again. */
  next(): boolean {
    this.#turn = (this.#turn + 1) % HOST_PORTS;
    return this.#turn === 0;
  }

  /** No port answered: starts over with the first. */
  first(): void {
    this.#turn = 0;
  }
}
