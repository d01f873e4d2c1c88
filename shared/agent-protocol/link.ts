/**
 * The one connection between host and guest agent, and the streams multiplexed on it. Both ends use this file.
 *
 * Each stream has a few channels of bytes. Flow control is credit-based: a sender may have at most WINDOW_BYTES of a channel unread at its
 * peer, and the reader's own pace returns credit, so that one slow reader never blocks another stream, and never costs memory. A peer that
 * exceeds a limit loses the connection, with the reason.
 */
import { MAX_FRAME_BYTES } from "./device-quirks.ts";
import {
  DATA_HEADER_BYTES,
  encodeData,
  encodeFrame,
  type Frame,
  FrameDecoder,
  FrameType,
  MAX_PAYLOAD_FROM_GUEST,
  MAX_PAYLOAD_FROM_HOST,
  setDataHeader,
} from "./frame.ts";
import { type StreamErrorBody, StreamErrorCode } from "./messages.ts";

/** Maximum of unread bytes at the peer, per channel of a stream. */
export const WINDOW_BYTES = 256 * 1024;
/** Whether the peer's window is valid for a channel. */
export function isWindow(value: unknown, most: number): value is number {
  return Number.isInteger(value) && Number(value) >= WINDOW_BYTES && Number(value) <= most;
}
/** Maximum data bytes of a channel in one frame. */
const MAX_DATA_BYTES = MAX_FRAME_BYTES - DATA_HEADER_BYTES;
/** Credit is returned in this amount: waking the sender costs more than its bytes, and it must not run out of credit. */
const GIVEN_BACK_BYTES = (WINDOW_BYTES * 3) / 4;
const MAX_UNREAD_EVENTS = 256;
/** Limit on events buffered before a listener is attached, counted unparsed (parsed objects are many times larger). */
const MAX_UNREAD_EVENT_BYTES = 64 * 1024;
/** Enough for any method; each additional channel would let a peer make us hold another window. */
const MAX_CHANNELS = 4;
/** Chunks up to this size are joined: each separate one would cost more than its bytes. */
const SMALL_BYTES = 4096;
const MAX_UNREAD_ANSWERS = 1024;
/** Maximum characters of code and message in a peer's error; longer text is truncated. */
const MAX_CODE = 64;
const MAX_TOLD = 500;
const EMPTY = new Uint8Array(0);
const TO_BYTES = new TextEncoder();
const TO_TEXT = new TextDecoder("utf-8", { fatal: true });
const TOO_MANY_STREAMS = TO_BYTES.encode(
  JSON.stringify({ error: { code: StreamErrorCode.too_many_streams, message: "too many open streams" } }),
);

/**
 * Carries the bytes. `write` resolves once more may be written; until then the caller must not modify the bytes, afterwards it may reuse
 * them.
 */
export interface Transport {
  write(bytes: Uint8Array): Promise<void> | undefined;
  /** Maximum number of frames for `sendNow`; absent if frames are built before they are sent. */
  mostFrames?: number;
  /**
   * Sends as many frames of MAX_FRAME_BYTES as there is room for, the last may be shorter: contiguous headers, and bytes. Returns the
   * number of bytes sent with the headers; 0 while other frames are queued. Both buffers may be reused afterwards.
   */
  sendNow?(headers: Uint8Array, headerBytes: number, bytes: Uint8Array): number;
  close(): void;
}

/** A stream that ended with an error, of the peer or of the link itself (`link_closed`). */
export class StreamError extends Error {
  override name = "StreamError";
  readonly code: string;
  constructor(body: StreamErrorBody) {
    super(body.message);
    this.code = body.code;
  }
}

export interface LinkOptions {
  side: "host" | "guest";
  transport: Transport;
  /** Maximum of concurrently open streams that the peer has opened. */
  maxPeerStreams: number;
  /** Channels on which a stream opened by the peer may send; all of them if absent. */
  peerChannels?: number;
  /** Maximum of unread bytes on all streams that the peer has opened; as much as its windows allow if absent. */
  maxPeerUnreadBytes?: number;
  /** The peer has opened a stream. */
  onOpen(stream: Stream, request: unknown): void;
  /** A frame of the handshake. */
  onHandshake(type: number, body: unknown): void;
  onClosed(reason: string): void;
  /** Called for every received frame, before it is processed. */
  onFrame?(type: number, bytes: number): void;
}

export class Link {
  readonly #options: LinkOptions;
  readonly #decoder: FrameDecoder;
  readonly #streams = new Map<number, Stream>();
  readonly #peerParity: number;
  #nextStream: number;
  #peerStreams = 0;
  #lastPeerStream = 0;
  #closedReason: string | null = null;
  #draining: Promise<void> | undefined;
  /** Buffer in which data frames are built; null while one of them is being sent. */
  #room: Uint8Array | null = null;
  readonly #headers: Uint8Array;
  #unread = 0;
  #peerUnreadBytes = 0;
  #awaitingPong: (() => void)[] = [];

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#decoder =
      options.side === "host"
        ? new FrameDecoder(MAX_PAYLOAD_FROM_GUEST)
        : new FrameDecoder(MAX_PAYLOAD_FROM_HOST, true);
    this.#headers = new Uint8Array(DATA_HEADER_BYTES * (options.transport.mostFrames ?? 0));
    this.#nextStream = options.side === "host" ? 1 : 2;
    this.#peerParity = options.side === "host" ? 0 : 1;
  }

  get closedReason(): string | null {
    return this.#closedReason;
  }

  /**
   * Processes bytes from the transport, at most `mostFrames` frames; returns the number of bytes. Any protocol violation closes the link.
   */
  receive(chunk: Uint8Array, mostFrames = Number.POSITIVE_INFINITY): number {
    if (this.#closedReason !== null) return chunk.byteLength;
    try {
      let frames = 0;
      for (const frame of this.#decoder.push(chunk)) {
        this.#options.onFrame?.(frame.type, frame.payload.byteLength);
        this.#dispatch(frame);
        if (this.#closedReason !== null) break;
        if (++frames === mostFrames) return this.#decoder.taken;
      }
    } catch (error) {
      this.close(error instanceof Error ? error.message : String(error));
    }
    return chunk.byteLength;
  }

  /** Opens a stream with a request that has a `method`. */
  open(request: { method: string }): Stream {
    if (this.#closedReason !== null) throw linkClosed(this.#closedReason);
    const stream = new Stream(this, this.#nextStream, MAX_CHANNELS);
    this.#nextStream += 2;
    this.#streams.set(stream.id, stream);
    this.sendJson(FrameType.open, stream.id, request);
    return stream;
  }

  /** Resolves when the peer has answered; rejects if the link closes first. */
  ping(): Promise<void> {
    if (this.#closedReason !== null) return Promise.reject(linkClosed(this.#closedReason));
    return new Promise((resolve, reject) => {
      this.#awaitingPong.push(() => (this.#closedReason === null ? resolve() : reject(linkClosed(this.#closedReason))));
      this.send(FrameType.ping, 0, EMPTY);
    });
  }

  /** Closes the connection; every open stream fails with `link_closed`. Idempotent. */
  close(reason: string): void {
    if (this.#closedReason !== null) return;
    this.#closedReason = reason;
    this.#options.transport.close();
    for (const stream of [...this.#streams.values()]) stream.end({ error: linkClosed(reason) });
    for (const settle of this.#awaitingPong.splice(0)) settle();
    this.#options.onClosed(reason);
  }

  sendJson(type: FrameType, stream: number, body: unknown): void {
    this.send(type, stream, TO_BYTES.encode(JSON.stringify(body)));
  }

  send(type: FrameType, stream: number, payload: Uint8Array): void {
    this.#write(encodeFrame(type, stream, payload));
  }

  /** Sends as much as possible without waiting, at least one frame, and returns the number of bytes. */
  sendData(stream: number, channel: number, bytes: Uint8Array): number {
    const small = bytes.byteLength <= SMALL_BYTES;
    const sent = small ? 0 : this.#sendNow(stream, channel, bytes);
    const whole = Math.floor(sent / MAX_FRAME_BYTES) * MAX_DATA_BYTES;
    const partly = sent % MAX_FRAME_BYTES;
    if (whole + partly === bytes.byteLength + DATA_HEADER_BYTES) return bytes.byteLength;
    if (whole > 0 && partly === 0) return whole;
    const rest = bytes.subarray(whole, whole + MAX_DATA_BYTES);
    const fresh = () => new Uint8Array(DATA_HEADER_BYTES + (small ? bytes.byteLength : MAX_DATA_BYTES));
    const room = small ? fresh() : (this.#room ?? fresh());
    const full = this.#write(encodeData(room, stream, channel, rest).subarray(partly));
    if (small) return rest.byteLength;
    const free = () => {
      this.#room = room;
    };
    this.#room = null;
    if (full) full.then(free, free);
    else free();
    return whole + rest.byteLength;
  }

  /** Returns the number of frame bytes sent: the caller need not encode them. */
  #sendNow(stream: number, channel: number, bytes: Uint8Array): number {
    const { transport } = this.#options;
    if (!transport.sendNow || this.#closedReason !== null) return 0;
    let at = 0;
    let end = 0;
    for (; at < this.#headers.byteLength && end < bytes.byteLength; at += DATA_HEADER_BYTES) {
      const length = Math.min(MAX_DATA_BYTES, bytes.byteLength - end);
      setDataHeader(this.#headers.subarray(at), stream, channel, length);
      end += length;
    }
    return transport.sendNow(this.#headers, DATA_HEADER_BYTES, bytes.subarray(0, end));
  }

  #write(frame: Uint8Array): Promise<void> | undefined {
    if (this.#closedReason !== null) return undefined;
    const full = this.#options.transport.write(frame);
    if (full) {
      this.#draining = full;
      const clear = () => {
        if (this.#draining === full) this.#draining = undefined;
      };
      full.then(clear, clear);
    }
    return full;
  }

  /** The transport's own back-pressure, on top of each channel's credit. */
  get draining(): Promise<void> | undefined {
    return this.#draining;
  }

  forget(stream: Stream): void {
    if (this.#streams.delete(stream.id) && stream.id % 2 === this.#peerParity) this.#peerStreams--;
  }

  /** Counts a stream's unread bytes. Returns whether they are still within the limit of its peer. */
  countUnread(stream: Stream, bytes: number): boolean {
    if (stream.id % 2 !== this.#peerParity) return true;
    this.#peerUnreadBytes += bytes;
    return bytes <= 0 || this.#peerUnreadBytes <= (this.#options.maxPeerUnreadBytes ?? Number.POSITIVE_INFINITY);
  }

  #dispatch({ type, stream: id, payload, own }: Frame): void {
    switch (type) {
      case FrameType.hello:
      case FrameType.welcome:
      case FrameType.ready:
        this.#options.onHandshake(type, parseJson(payload));
        return;
      case FrameType.open:
        this.#accept(id, parseJson(payload));
        return;
      case FrameType.ping:
        this.#answer(FrameType.pong, 0, EMPTY);
        return;
      case FrameType.pong:
        this.#awaitingPong.shift()?.();
        return;
    }
    const stream = this.#streams.get(id);
    if (!stream) {
      // A frame that was in flight when we ended the stream is ignored; a frame for a stream that was never open is a violation.
      const isKnown = id % 2 === this.#peerParity ? id <= this.#lastPeerStream : id < this.#nextStream;
      if (isKnown && id > 0) return;
      throw new Error(`frame of type ${type} for stream ${id}, which was never open`);
    }
    stream.receive(type, payload, own);
  }

  /** Answers immediately. A peer that sends requests without reading the answers would make them pile up here. */
  #answer(type: FrameType, stream: number, payload: Uint8Array): void {
    this.#unread = this.#draining ? this.#unread + 1 : 0;
    if (this.#unread > MAX_UNREAD_ANSWERS) throw new Error("the peer sends requests without reading the replies");
    this.send(type, stream, payload);
  }

  #accept(id: number, request: unknown): void {
    if (id % 2 !== this.#peerParity || id <= this.#lastPeerStream) throw new Error(`stream ${id} may not be opened`);
    this.#lastPeerStream = id;
    if (this.#peerStreams >= this.#options.maxPeerStreams) {
      this.#answer(FrameType.close, id, TOO_MANY_STREAMS);
      return;
    }
    this.#peerStreams++;
    const stream = new Stream(this, id, this.#options.peerChannels ?? MAX_CHANNELS);
    this.#streams.set(id, stream);
    this.#options.onOpen(stream, request);
  }
}

type Outcome = { result: unknown } | { error: StreamError };

export class Stream {
  readonly id: number;
  readonly #link: Link;
  readonly #incoming = new Map<number, Incoming>();
  readonly #outgoing = new Map<number, Outgoing>();
  readonly #events: Uint8Array[] = [];
  readonly #finished = Promise.withResolvers<unknown>();
  readonly #channels: number;
  #onEvent: ((event: unknown) => void) | null = null;
  #unreadBytes = 0;
  #unreadEventBytes = 0;
  #ended = false;

  constructor(link: Link, id: number, channels: number) {
    this.#link = link;
    this.id = id;
    this.#channels = channels;
    // If the end of a stream is not awaited, it must not cause an unhandled rejection.
    this.#finished.promise.catch(() => {});
  }

  /** Resolves to the peer's result; rejects with StreamError. */
  get finished(): Promise<unknown> {
    return this.#finished.promise;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Sends bytes on a channel, waiting for credit and for the transport. Returns false once the stream has ended. */
  async write(channel: number, bytes: Uint8Array): Promise<boolean> {
    for (let offset = this.push(channel, bytes); offset < bytes.byteLength; ) {
      if (!(await this.writable(channel))) return false;
      offset += this.push(channel, bytes.subarray(offset));
    }
    return !this.#ended;
  }

  /** Sends as much as credit and the transport allow without waiting, and returns the number of bytes: these may be reused. */
  push(channel: number, bytes: Uint8Array): number {
    const outgoing = this.#outgoingOf(channel);
    let offset = 0;
    while (offset < bytes.byteLength && outgoing.credit > 0 && !this.#ended && !this.#link.draining) {
      const sent = this.#link.sendData(this.id, channel, bytes.subarray(offset, offset + outgoing.credit));
      outgoing.credit -= sent;
      offset += sent;
    }
    return offset;
  }

  /** Resolves when bytes may be sent on a channel; to false once the stream has ended. */
  async writable(channel: number): Promise<boolean> {
    const outgoing = this.#outgoingOf(channel);
    while (!this.#ended) {
      if (outgoing.credit === 0) {
        outgoing.waiting ??= Promise.withResolvers<void>();
        await outgoing.waiting.promise;
      } else if (this.#link.draining) await this.#link.draining.catch(() => {});
      else return true;
    }
    return false;
  }

  /** Ends a channel: no more bytes follow. */
  endChannel(channel: number): void {
    if (!this.#ended) this.#link.send(FrameType.eof, this.id, Uint8Array.of(channel));
  }

  /** The bytes of a channel, in order, until its end; credit is returned as they are consumed. */
  async *read(channel: number): AsyncGenerator<Uint8Array> {
    const incoming = this.#incomingOf(channel);
    while (true) {
      const chunk = incoming.chunks.shift();
      if (chunk) {
        this.#giveBack(channel, incoming, chunk.byteLength);
        yield chunk;
      } else if (incoming.eof || this.#ended) {
        return;
      } else {
        incoming.waiting ??= Promise.withResolvers<void>();
        await incoming.waiting.promise;
      }
    }
  }

  /**
   * Passes the bytes of a channel to `take` as they arrive; they are valid during the call only. Resolves at the end of the channel or of
   * the stream. The reader returns credit by `giveBack`.
   */
  async passTo(channel: number, take: (bytes: Uint8Array) => void): Promise<void> {
    const incoming = this.#incomingOf(channel);
    incoming.take = take;
    for (const chunk of incoming.chunks.splice(0)) take(chunk);
    while (!incoming.eof && !this.#ended) {
      incoming.waiting ??= Promise.withResolvers<void>();
      await incoming.waiting.promise;
    }
  }

  /** Returns credit for bytes of a channel that `passTo` has passed on. */
  giveBack(channel: number, bytes: number): void {
    this.#giveBack(channel, this.#incomingOf(channel), bytes);
  }

  /**
   * Lets the peer have `windowBytes` of a channel unread, never fewer than before. The peer has to be notified, by its request or an event.
   */
  widenIncoming(channel: number, windowBytes: number): void {
    this.#incomingOf(channel).window += windowBytes - WINDOW_BYTES;
  }

  /** The peer lets this side have `windowBytes` of a channel unread. */
  widenOutgoing(channel: number, windowBytes: number): void {
    const outgoing = this.#outgoingOf(channel);
    outgoing.credit += windowBytes - outgoing.window;
    outgoing.window = windowBytes;
    wake(outgoing);
  }

  /** Sends an event on the stream. */
  say(event: unknown): void {
    if (!this.#ended) this.#link.sendJson(FrameType.event, this.id, event);
  }

  /** Attaches the listener for the peer's events on the stream; it also gets earlier ones. */
  hear(listener: (event: unknown) => void): void {
    this.#onEvent = listener;
    this.#unreadEventBytes = 0;
    for (const event of this.#events.splice(0)) listener(parseJson(event));
  }

  /** Ends the stream with its result. */
  finish(result: unknown): void {
    if (this.#ended) return;
    this.#link.sendJson(FrameType.close, this.id, { result });
    this.end({ result });
  }

  /** Ends the stream with an error. */
  fail(code: string, message: string): void {
    if (this.#ended) return;
    this.#link.sendJson(FrameType.close, this.id, { error: { code, message } });
    this.end({ error: new StreamError({ code, message }) });
  }

  /** Called by the link: processes a frame of this stream. */
  receive(type: number, payload: Uint8Array, own: boolean): void {
    switch (type) {
      case FrameType.data:
        this.#takeData(payload, own);
        return;
      case FrameType.eof: {
        const incoming = this.#incomingOf(firstByte(payload));
        incoming.eof = true;
        wake(incoming);
        return;
      }
      case FrameType.credit: {
        if (payload.byteLength !== 5) throw new Error("credit frame of the wrong length");
        const outgoing = this.#outgoingOf(firstByte(payload));
        const grant = new DataView(payload.buffer, payload.byteOffset).getUint32(1);
        if (outgoing.credit + grant > outgoing.window) throw new Error("credit beyond the window");
        outgoing.credit += grant;
        if (grant > 0) wake(outgoing);
        return;
      }
      case FrameType.event: {
        const event = parseJson(payload);
        if (this.#onEvent) this.#onEvent(event);
        else this.#keepEvent(payload);
        return;
      }
      case FrameType.close:
        this.end(parseOutcome(payload));
        return;
      default:
        // A newer peer may have more types: within a generation types are only added.
        return;
    }
  }

  /** Called by the link: settles all pending operations of this stream. */
  end(outcome: Outcome): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#link.countUnread(this, -this.#unreadBytes);
    this.#link.forget(this);
    for (const incoming of this.#incoming.values()) wake(incoming);
    for (const outgoing of this.#outgoing.values()) wake(outgoing);
    if ("error" in outcome) this.#finished.reject(outcome.error);
    else this.#finished.resolve(outcome.result);
  }

  /** Until a listener is attached. */
  #keepEvent(payload: Uint8Array): void {
    this.#unreadEventBytes += payload.byteLength;
    if (this.#events.length === MAX_UNREAD_EVENTS || this.#unreadEventBytes > MAX_UNREAD_EVENT_BYTES) {
      throw new Error("too many unread events");
    }
    this.#events.push(new Uint8Array(payload));
  }

  #takeData(payload: Uint8Array, own: boolean): void {
    const incoming = this.#incomingOf(firstByte(payload));
    const bytes = payload.subarray(1);
    if (bytes.byteLength > incoming.window) throw new Error("data beyond the window");
    if (incoming.eof) throw new Error("data after the end of its channel");
    if (bytes.byteLength === 0) return;
    incoming.window -= bytes.byteLength;
    this.#unreadBytes += bytes.byteLength;
    if (!this.#link.countUnread(this, bytes.byteLength)) {
      this.fail(StreamErrorCode.too_many_streams, "too much unread data");
      return;
    }
    if (incoming.take) {
      incoming.take(bytes);
      return;
    }
    // Copies a chunk that is not our own (a Buffer's slice is no copy): a small piece must not keep a large one alive either.
    const last = incoming.chunks.at(-1);
    if (last && last.byteLength + bytes.byteLength <= SMALL_BYTES) incoming.chunks.splice(-1, 1, joined(last, bytes));
    else incoming.chunks.push(own ? bytes : new Uint8Array(bytes));
    wake(incoming);
  }

  #giveBack(channel: number, incoming: Incoming, bytes: number): void {
    if (!this.#ended) {
      this.#unreadBytes -= bytes;
      this.#link.countUnread(this, -bytes);
    }
    incoming.owed += bytes;
    if (incoming.owed < GIVEN_BACK_BYTES || this.#ended) return;
    const payload = new Uint8Array(5);
    payload[0] = channel;
    new DataView(payload.buffer).setUint32(1, incoming.owed);
    incoming.window += incoming.owed;
    incoming.owed = 0;
    this.#link.send(FrameType.credit, this.id, payload);
  }

  #incomingOf(channel: number): Incoming {
    let incoming = this.#incoming.get(channel);
    if (!incoming) {
      if (channel >= this.#channels) throw new Error(`channel ${channel} does not exist`);
      incoming = { chunks: [], window: WINDOW_BYTES, owed: 0, eof: false, waiting: null, take: null };
      this.#incoming.set(channel, incoming);
    }
    return incoming;
  }

  #outgoingOf(channel: number): Outgoing {
    let outgoing = this.#outgoing.get(channel);
    if (!outgoing) {
      if (channel >= MAX_CHANNELS) throw new Error(`channel ${channel} does not exist`);
      outgoing = { credit: WINDOW_BYTES, window: WINDOW_BYTES, waiting: null };
      this.#outgoing.set(channel, outgoing);
    }
    return outgoing;
  }
}

interface Waiting {
  waiting: PromiseWithResolvers<void> | null;
}

interface Incoming extends Waiting {
  chunks: Uint8Array[];
  window: number;
  owed: number;
  eof: boolean;
  /** Callback that receives bytes as they arrive, instead of `chunks`. */
  take: ((bytes: Uint8Array) => void) | null;
}

interface Outgoing extends Waiting {
  credit: number;
  /** Maximum unread bytes at the peer. */
  window: number;
}

function wake(waiting: Waiting): void {
  const { waiting: waiter } = waiting;
  waiting.waiting = null;
  waiter?.resolve();
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.byteLength + second.byteLength);
  both.set(first);
  both.set(second, first.byteLength);
  return both;
}

function firstByte(payload: Uint8Array): number {
  const byte = payload[0];
  if (byte === undefined) throw new Error("frame without its channel");
  return byte;
}

function parseJson(payload: Uint8Array): unknown {
  return JSON.parse(TO_TEXT.decode(payload));
}

function parseOutcome(payload: Uint8Array): Outcome {
  const body = parseJson(payload);
  if (typeof body === "object" && body !== null) {
    if ("result" in body) return { result: body.result };
    if ("error" in body && typeof body.error === "object" && body.error !== null) {
      const { code, message } = body.error as Partial<Record<"code" | "message", unknown>>;
      // Only the side that lost a connection may report the loss: a client that gets `link_closed` may retry.
      const own = code === StreamErrorCode.link_closed ? StreamErrorCode.internal : String(code).slice(0, MAX_CODE);
      return { error: new StreamError({ code: own, message: String(message).slice(0, MAX_TOLD) }) };
    }
  }
  throw new Error("close frame without result or error");
}

function linkClosed(reason: string): StreamError {
  return new StreamError({ code: StreamErrorCode.link_closed, message: reason });
}
