/** An in-memory transport between two links, and a link with a peer that the test plays, frame by frame. */
import {
  encodeFrame,
  type Frame,
  FrameDecoder,
  type FrameType,
  MAX_PAYLOAD_FROM_HOST,
} from "../../shared/agent-protocol/frame.ts";
import { Link, type LinkOptions, type Stream, type Transport } from "../../shared/agent-protocol/link.ts";
import { PIECE_HEADER_BYTES, type Piece } from "../../shared/agent-protocol/pieces.ts";

type Opened = { stream: Stream; request: unknown };

interface Side {
  link: Link;
  opened: Opened[];
  handshake: { type: number; body: unknown }[];
  closed: string[];
}

type Hooks = Partial<Pick<LinkOptions, "maxPeerStreams" | "onOpen">>;

function makeSide(side: "host" | "guest", transport: Transport, hooks: Hooks): Side {
  const made: Omit<Side, "link"> = { opened: [], handshake: [], closed: [] };
  const link = new Link({
    side,
    transport,
    maxPeerStreams: hooks.maxPeerStreams ?? 64,
    onOpen: (stream, request) => {
      made.opened.push({ stream, request });
      hooks.onOpen?.(stream, request);
    },
    onHandshake: (type, body) => void made.handshake.push({ type, body }),
    onClosed: (reason) => void made.closed.push(reason),
  });
  return Object.assign(made, { link });
}

/** One direction: bytes wait here until the event loop comes round, or as long as it is held. */
class Pipe implements Transport {
  receive: (bytes: Uint8Array) => void = () => {};
  /** Bytes that wait; above `capacity` the writer has to wait as well. */
  waiting = 0;
  most = 0;
  #held = false;
  #queue: Uint8Array[] = [];
  #space: PromiseWithResolvers<void> | null = null;
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#queue.push(bytes.slice());
    this.waiting += bytes.byteLength;
    this.most = Math.max(this.most, this.waiting);
    if (!this.#held && this.#queue.length === 1) setImmediate(() => this.#deliver());
    if (this.waiting <= this.#capacity) return undefined;
    this.#space ??= Promise.withResolvers<void>();
    return this.#space.promise;
  }

  close(): void {
    this.#queue = [];
    this.#space?.resolve();
  }

  hold(): void {
    this.#held = true;
  }

  release(): void {
    this.#held = false;
    this.#deliver();
  }

  #deliver(): void {
    if (this.#held) return;
    for (const bytes of this.#queue.splice(0)) {
      this.waiting -= bytes.byteLength;
      this.receive(bytes);
    }
    this.#space?.resolve();
    this.#space = null;
  }
}

/** A host's link and a guest's, joined. */
export function joined(options: { host?: Hooks; guest?: Hooks; capacity?: number } = {}) {
  const [toGuest, toHost] = [new Pipe(options.capacity ?? 2 ** 20), new Pipe(options.capacity ?? 2 ** 20)];
  const host = makeSide("host", toGuest, options.host ?? {});
  const guest = makeSide("guest", toHost, options.guest ?? {});
  toGuest.receive = (bytes) => guest.link.receive(bytes);
  toHost.receive = (bytes) => host.link.receive(bytes);
  return { host, guest, toGuest, toHost };
}

/**
 * A host's link with the test as its guest: `send` sends a frame of the guest, `sent` are the host's frames, unless the guest never reads.
 */
export function alone(hooks: Hooks & { deaf?: boolean } = {}) {
  const sent: Frame[] = [];
  const decoder = new FrameDecoder(MAX_PAYLOAD_FROM_HOST);
  let transportClosed = 0;
  const side = makeSide(
    "host",
    {
      write: (bytes) => {
        for (const frame of decoder.push(bytes)) sent.push({ ...frame, payload: frame.payload.slice() });
        return hooks.deaf ? new Promise<void>(() => {}) : undefined;
      },
      close: () => {
        transportClosed++;
      },
    },
    hooks,
  );
  return {
    ...side,
    sent,
    get transportClosed() {
      return transportClosed;
    },
    send: (type: FrameType | number, stream: number, payload: Uint8Array | string | object = new Uint8Array(0)) => {
      const bytes =
        payload instanceof Uint8Array
          ? payload
          : Buffer.from(typeof payload === "string" ? payload : JSON.stringify(payload));
      side.link.receive(encodeFrame(type as FrameType, stream, bytes));
    },
  };
}

export function credit(channel: number, bytes: number): Uint8Array {
  const payload = Buffer.alloc(5);
  payload[0] = channel;
  payload.writeUInt32BE(bytes, 1);
  return payload;
}

export function data(channel: number, length: number): Uint8Array {
  return new Uint8Array(length + 1).fill(channel, 0, 1);
}

/** A piece of output as it is sent. */
export function pieceOf({ channel, seq, bytes }: Piece): Buffer {
  const piece = Buffer.alloc(PIECE_HEADER_BYTES + bytes.byteLength);
  piece.writeUInt8(channel, 0);
  piece.writeUIntBE(seq, 1, 6);
  piece.writeUInt32BE(bytes.byteLength, 7);
  piece.set(bytes, PIECE_HEADER_BYTES);
  return piece;
}

/** All bytes of a channel, to its end. */
export async function readAll(stream: Stream, channel: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream.read(channel)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Lets all pending work of the event loop finish. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done));
}
