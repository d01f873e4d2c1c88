/** Owns the writing side of the connection to the host: order, and saying when it is full. */
import type { Socket } from "bun";
import type { Transport } from "../shared/agent-protocol/link.ts";

export class SocketTransport implements Transport {
  readonly #socket: Socket;
  #queue: Uint8Array[] = [];
  #drained: PromiseWithResolvers<void> | null = null;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#queue.push(bytes);
    if (!this.#drained) this.flush();
    if (this.#queue.length === 0) return undefined;
    this.#drained ??= Promise.withResolvers<void>();
    return this.#drained.promise;
  }

  /** Writes what waits; to be called when the socket takes more. */
  flush(): void {
    while (true) {
      const [head] = this.#queue;
      if (!head) break;
      const written = this.#socket.write(head);
      if (written < head.byteLength) {
        this.#queue[0] = head.subarray(Math.max(written, 0));
        return;
      }
      this.#queue.shift();
    }
    const drained = this.#drained;
    this.#drained = null;
    drained?.resolve();
  }

  close(): void {
    this.#socket.end();
    this.drop();
  }

  /** Lets go of who waits to write: the connection is gone. */
  drop(): void {
    this.#queue = [];
    this.#drained?.resolve();
    this.#drained = null;
  }
}
