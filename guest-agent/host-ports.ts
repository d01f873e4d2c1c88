/**
 * Owns which of the host's ports the agent dials. Daemons that share the kernel's vsock have one each: where nobody
 * listens the guest is refused, and a daemon that does not know it closes the connection or proves nothing. Behind a device of its own,
 * which gives no answer on a port without a listener, the first is the only one.
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
