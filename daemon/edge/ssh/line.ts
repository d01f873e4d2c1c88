/**
 * Owns what ssh2 1.17 takes without a bound and tells nobody of: what waits to leave for a client that does not read, or in the
 * middle of an exchange of keys; what came and was not taken, in however small packets; sessions in which nothing had begun.
 */
import type { Socket } from "node:net";
import type { Connection as Client, Session } from "ssh2";

/** What may wait in the socket; a client that reads nothing costs no more. */
const MOST_UNSENT_BYTES = 256 * 1024;
/** Answers wait there too: beyond this the client is to read before it is listened to. */
const MOST_UNREAD_ANSWER_BYTES = 1024 * 1024;
/** ssh2 cuts what it writes into packets of the client's size: of no bytes it would never come to an end. */
const LEAST_PACKET_BYTES = 1024;

/** A channel, and what ssh2 knows of it. */
export interface Channel {
  readonly readableLength: number;
  readonly _readableState: { buffer: { length: number } };
  readonly incoming: { state: string };
  readonly outgoing: { packetSize: number };
  once(event: "close", listener: () => void): unknown;
}

interface Inside {
  _protocol: { _kexinit: unknown; channelClose(id: number): void };
  _chanMgr: { remove(id: number): void };
}

interface InsideSession {
  _channel: unknown;
  _chanInfo: { incoming: { id: number }; outgoing: { id: number } };
}

export class Line {
  readonly #inside: Inside;
  readonly #socket: Socket;
  #moved = Promise.withResolvers<void>();

  constructor(client: Client, socket: Socket) {
    this.#inside = client as unknown as Inside;
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
    return this.#isExchangingKeys || this.#socket.writableLength > MOST_UNSENT_BYTES;
  }

  /** Resolves when it may have changed whether the line is full. */
  get moved(): Promise<void> {
    return this.#moved.promise;
  }

  /** Whether the client has to read before it is listened to. */
  get isUnread(): boolean {
    return this.#socket.writableLength > MOST_UNREAD_ANSWER_BYTES;
  }

  /** A session that its client has closed: one in which nothing had begun ssh2 would keep, and never answer. */
  forget(session: Session): void {
    const { _channel, _chanInfo } = session as unknown as InsideSession;
    if (_channel) return;
    this.#inside._chanMgr.remove(_chanInfo.incoming.id);
    this.#inside._protocol.channelClose(_chanInfo.outgoing.id);
  }

  /** Then nothing else leaves, and ssh2 keeps all that is written. */
  get #isExchangingKeys(): boolean {
    return this.#inside._protocol._kexinit !== undefined;
  }
}

/** Whether the client has closed it; its own `close` comes only after all of its bytes were taken. */
export function isClosed({ incoming }: Channel): boolean {
  return incoming.state === "closed";
}

/** How many packets' bytes wait to be taken. */
export function unreadPackets({ _readableState }: Channel): number {
  return _readableState.buffer.length;
}

export function takesPackets({ outgoing }: Channel): boolean {
  return outgoing.packetSize >= LEAST_PACKET_BYTES;
}
