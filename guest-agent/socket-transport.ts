/** Owns the writing side of the connection to the host: order, and saying when it is full. */
import type { Socket } from "bun";
import type { Transport } from "../shared/agent-protocol/link.ts";

/**
 * Linux 6.12 sends a write of more than 32 KiB as one vsock packet in several descriptors; vhost-device-vsock 0.3.0
 * takes only the first kind and loses the other without a word, credit included.
 */
const MAX_WRITE_BYTES = 16 * 1024;

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
    for (let [head] = this.#queue; head; [head] = this.#queue) {
      const part = head.subarray(0, MAX_WRITE_BYTES);
      const written = Math.max(this.#socket.write(part), 0);
      if (written < head.byteLength) this.#queue[0] = head.subarray(written);
      else this.#queue.shift();
      if (written < part.byteLength) return;
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
