/**
 * Bounds that ssh2 1.17 lacks: data that waits for a client that does not read, or for the end of a key exchange; received data that was
 * not read, in packets of any size; sessions without a command.
 */
import type { Socket } from "node:net";
import type { Connection as Client } from "ssh2";
import { type Channel, isExchangingKeys, packetSizeOf } from "./ssh2-internals.ts";

/** Limit of unsent data in the socket, which is the cost of a client that reads nothing. */
const MAX_UNSENT_BYTES = 256 * 1024;
/** Responses wait there too: above this the client must read before its data is read. */
const MAX_UNREAD_ANSWER_BYTES = 1024 * 1024;
/** ssh2 splits its writes into packets of the client's size: with size 0 it would loop forever. */
const LEAST_PACKET_BYTES = 1024;

export class ConnectionBounds {
  readonly #client: Client;
  readonly #socket: Socket;
  #moved = Promise.withResolvers<void>();

  constructor(client: Client, socket: Socket) {
    this.#client = client;
    this.#socket = socket;
    const move = () => {
      this.#moved.resolve();
      this.#moved = Promise.withResolvers();
    };
    socket.on("drain", move);
    client.on("rekey", move);
  }

  /** Whether a write would wait now. */
  get isFull(): boolean {
    return isExchangingKeys(this.#client) || this.#socket.writableLength > MAX_UNSENT_BYTES;
  }

  /** Resolves when the connection may have become full, or no longer full. */
  get moved(): Promise<void> {
    return this.#moved.promise;
  }

  /** Whether the client must read before more is read from it. */
  get isUnread(): boolean {
    return this.#socket.writableLength > MAX_UNREAD_ANSWER_BYTES;
  }
}

export function takesPackets(channel: Channel): boolean {
  return packetSizeOf(channel) >= LEAST_PACKET_BYTES;
}
