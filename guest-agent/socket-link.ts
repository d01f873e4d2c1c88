/** Connects a descriptor to a Link: Bun's socket, its events, and the order of writes. */
import type { Socket, SocketHandler } from "bun";
import { MAX_WRITE_BYTES } from "../shared/agent-protocol/device-quirks.ts";
import { Link, type LinkOptions, type Transport } from "../shared/agent-protocol/link.ts";
import * as libc from "./libc.ts";

/** Reason of a link whose peer closed the connection. */
export const CONNECTION_ENDED = "the connection ended";

/** Takes ownership of a connected stream socket. */
export async function linkOver(fd: number, options: Omit<LinkOptions, "transport">): Promise<Link> {
  const transport = new SocketTransport(fd);
  const link = new Link({ ...options, transport });
  await adopt(fd, {
    open: (socket) => transport.open(socket),
    data: (_, chunk) => void link.receive(chunk),
    drain: () => transport.flush(),
    close: () => link.close(CONNECTION_ENDED),
    error: (_, error) => link.close(error.message),
  });
  return link;
}

/** Bun accepts a descriptor here; only its types lack it. */
export async function adopt(fd: number, socket: SocketHandler<undefined>): Promise<void> {
  const options: Bun.FdSocketOptions = { fd, socket };
  await Bun.connect(options as Bun.FdSocketOptions & Bun.UnixSocketOptions);
}

/** Limits each write to the size that a vsock device passes on (the quirk split_packets_lost). */
export class SocketTransport implements Transport {
  #socket: Pick<Socket<undefined>, "write" | "end"> | null = null;
  #queue: Uint8Array[] = [];
  #drained: PromiseWithResolvers<void> | null = null;
  readonly mostFrames = libc.MAX_FRAMES;
  /** The socket's descriptor, for sends that bypass it; null if unknown, and once the number may be reused. */
  #fd: number | null;

  constructor(fd: number | null = null) {
    this.#fd = fd;
  }

  open(socket: Pick<Socket<undefined>, "write" | "end">): void {
    this.#socket = socket;
    this.flush();
  }

  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#queue.push(bytes);
    if (!this.#drained) this.flush();
    if (this.#queue.length === 0) return undefined;
    this.#drained ??= Promise.withResolvers<void>();
    return this.#drained.promise;
  }

  sendNow(headers: Uint8Array, headerBytes: number, bytes: Uint8Array): number {
    if (this.#fd === null || !this.#socket || this.#queue.length > 0) return 0;
    return libc.sendFrames(this.#fd, headers, headerBytes, bytes, MAX_WRITE_BYTES);
  }

  /** Writes queued bytes; to be called when the socket is writable. */
  flush(): void {
    if (!this.#socket) return;
    for (let [head] = this.#queue; head; [head] = this.#queue) {
      const part = head.subarray(0, MAX_WRITE_BYTES);
      const written = Math.max(this.#socket.write(part), 0);
      if (written < head.byteLength) this.#queue[0] = head.subarray(written);
      else this.#queue.shift();
      if (written < part.byteLength) return;
    }
    this.#settle();
  }

  /** Drops queued bytes; waiting writers continue. */
  close(): void {
    this.#fd = null;
    this.#queue = [];
    this.#settle();
    this.#socket?.end();
  }

  #settle(): void {
    const drained = this.#drained;
    this.#drained = null;
    drained?.resolve();
  }
}
