/**
 * Owns what ssh2 1.17 takes without a bound and tells nobody of: what waits to leave for a client that does not read, or in the
 * middle of an exchange of keys; what came and was not taken, in however small packets; sessions in which nothing had begun.
 */
import type { Socket } from "node:net";
import type { Connection as Client } from "ssh2";
import { type Channel, isExchangingKeys, packetSizeOf } from "./inside.ts";

/** What may wait in the socket; a client that reads nothing costs no more. */
const MOST_UNSENT_BYTES = 256 * 1024;
/** Answers wait there too: beyond this the client is to read before it is listened to. */
const MOST_UNREAD_ANSWER_BYTES = 1024 * 1024;
/** ssh2 cuts what it writes into packets of the client's size: of no bytes it would never come to an end. */
const LEAST_PACKET_BYTES = 1024;

export class Line {
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

  /** Whether what is written now would wait. */
  get isFull(): boolean {
    return isExchangingKeys(this.#client) || this.#socket.writableLength > MOST_UNSENT_BYTES;
  }

  /** Resolves when it may have changed whether the line is full. */
  get moved(): Promise<void> {
    return this.#moved.promise;
  }

  /** Whether the client has to read before it is listened to. */
  get isUnread(): boolean {
    return this.#socket.writableLength > MOST_UNREAD_ANSWER_BYTES;
  }
}

export function takesPackets(channel: Channel): boolean {
  return packetSizeOf(channel) >= LEAST_PACKET_BYTES;
}
