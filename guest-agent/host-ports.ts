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

  /** This one is not ours. Returns whether the next is the first again. */
  next(): boolean {
    this.#turn = (this.#turn + 1) % HOST_PORTS;
    return this.#turn === 0;
  }

  /** There was no answer at all. */
  first(): void {
    this.#turn = 0;
  }
}
