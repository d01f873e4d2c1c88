/**
 * Incremental parser of HTTP/1 messages in a queue of bytes: bounded, and strict about all that two receivers could read differently
 * (RFC 9112, 11.2). It waits for nothing, so it serves readers that pull and ones that are pushed to. Every byte is in the `raw` of exactly
 * one part.
 *
 *     start ──its line──▶ headers ──▶ length ─────────────────────────▶ start, or over
 *                            │        to_end ──the connection's end────▶ over
 *                            └──────▶ size ──▶ chunk ──▶ chunk_end ──▶ size
 *                                       └──0──▶ trailers ─────────────▶ start, or over
 */
import type { ByteQueue } from "../byte-queue.ts";
import { BadMessage } from "./bad-message.ts";
import { type Framing, type Header, readHeader } from "./headers.ts";

const MAX_HEAD_BYTES = 64 * 1024;
const MAX_HEADERS = 256;
const MAX_CHUNK_LINE_BYTES = 256;
const CHUNK_SIZE = /^([0-9a-fA-F]{1,12})(?:[ \t]*;[\t\x20-\x7e]*)?$/;

/** data: bytes of the body. framing: a line of a chunked body. blank: an empty line before a request. */
export type MessagePart<Head> =
  | { kind: "head"; head: Head; raw: Buffer }
  | { kind: "data" | "framing" | "blank"; raw: Buffer }
  | { kind: "end"; trailers: Header[]; raw: Buffer };

type State = "start" | "headers" | "length" | "to_end" | "size" | "chunk" | "chunk_end" | "trailers" | "over";

/** `isLast`: no message follows on the connection, or none that this parser reads. */
export abstract class MessageParser<Start, Head extends { framing: Framing; isLast: boolean }> {
  readonly #queue: ByteQueue;
  readonly #kind: "request" | "answer";
  readonly #maxHeadBytes: number;
  #state: State = "start";
  /** Bytes of the body or chunk that are still to come. */
  #left = 0;
  /** Offset in the queue of the next line of a head or of trailers, which are taken as a whole. */
  #offset = 0;
  #headers: Header[] = [];
  #isLast = false;
  /** The first line of the current message, also before the rest of its head has arrived. */
  start: Start | null = null;

  constructor(queue: ByteQueue, kind: "request" | "answer", maxHeadBytes = MAX_HEAD_BYTES) {
    this.#queue = queue;
    this.#kind = kind;
    this.#maxHeadBytes = maxHeadBytes;
  }

  protected abstract readStart(line: string): Start;
  protected abstract readHead(start: Start, headers: Header[]): Head;

  /** Number of following bytes that belong to the body, whatever they are. */
  get unread(): number {
    return this.#state === "length" || this.#state === "chunk" ? this.#left : 0;
  }

  /** Takes the next part from the queue; null if more bytes are needed, or none is expected. Throws BadMessage. */
  next(): MessagePart<Head> | null {
    switch (this.#state) {
      case "start":
      case "headers":
        return this.#head();
      case "length":
      case "to_end":
        return this.#left === 0 ? this.#end([]) : this.#data();
      case "size":
        return this.#size();
      case "chunk":
        return this.#data();
      case "chunk_end":
        return this.#line(0) === null ? null : this.#part("framing", "size");
      case "trailers":
        return this.#readHeaders() ? this.#end(this.#headers) : null;
      case "over":
        return null;
    }
  }

  /** The connection has ended, and the queue is empty. Throws BadMessage unless the message may end so. */
  finish(): MessagePart<Head> {
    if (this.#state !== "to_end") throw new BadMessage(`the connection ended before its ${this.#kind} did`);
    return this.#end([]);
  }

  #head(): MessagePart<Head> | null {
    if (this.#state === "start") {
      this.start = null;
      const line = this.#line(this.#maxHeadBytes);
      if (line === null) return null;
      // Servers ignore empty lines before a request.
      if (line === "" && this.#kind === "request") return this.#part("blank", "start");
      this.start = this.readStart(line);
      this.#headers = [];
      this.#state = "headers";
    }
    if (this.start === null || !this.#readHeaders()) return null;
    const head = this.readHead(this.start, this.#headers);
    const { framing } = head;
    this.#isLast = head.isLast;
    this.#left = framing.kind === "length" ? framing.bytes : framing.kind === "to_end" ? Number.POSITIVE_INFINITY : 0;
    this.#state = framing.kind === "none" ? "length" : framing.kind === "chunked" ? "size" : framing.kind;
    return { kind: "head", head, raw: this.#taken() };
  }

  /** Whether all headers have arrived, with the empty line after them. */
  #readHeaders(): boolean {
    for (;;) {
      const line = this.#line(this.#maxHeadBytes);
      if (line === null || line === "") return line === "";
      this.#headers.push(readHeader(line));
      if (this.#headers.length > MAX_HEADERS) throw new BadMessage(`over ${MAX_HEADERS} headers`);
    }
  }

  #size(): MessagePart<Head> | null {
    const line = this.#line(MAX_CHUNK_LINE_BYTES);
    if (line === null) return null;
    const [, size] = CHUNK_SIZE.exec(line) ?? [];
    if (size === undefined) throw new BadMessage("a chunk without its size");
    this.#left = Number.parseInt(size, 16);
    this.#headers = [];
    return this.#part("framing", this.#left === 0 ? "trailers" : "chunk");
  }

  #data(): MessagePart<Head> | null {
    if (this.#queue.byteLength === 0) return null;
    const raw = this.#queue.take(this.#left);
    this.#left -= raw.byteLength;
    if (this.#state === "chunk" && this.#left === 0) this.#state = "chunk_end";
    return { kind: "data", raw };
  }

  #part(kind: "framing" | "blank", next: State): MessagePart<Head> {
    this.#state = next;
    return { kind, raw: this.#taken() };
  }

  #end(trailers: Header[]): MessagePart<Head> {
    this.#state = this.#isLast ? "over" : "start";
    return { kind: "end", trailers, raw: this.#taken() };
  }

  /** The lines read so far. */
  #taken(): Buffer {
    const raw = this.#queue.take(this.#offset);
    this.#offset = 0;
    return raw;
  }

  /** The next line without its end; null if it is incomplete. `most` bounds the lines that are taken together. */
  #line(most: number): string | null {
    const end = this.#queue.findLineFeed(this.#offset);
    if ((end === -1 ? this.#queue.byteLength : end) > most + 1) {
      throw new BadMessage(most === 0 ? "a chunk that differs from its declared size" : `lines of over ${most} bytes`);
    }
    if (end === -1) return null;
    const text = this.#queue.bytes.toString("latin1", this.#offset, end);
    this.#offset = end + 1;
    if (text.endsWith("\r")) return text.slice(0, -1);
    // Simple servers end lines of a head with it. Their heads are serialized again; requests are passed on unchanged.
    const isOfHead = this.#state === "start" || this.#state === "headers";
    if (this.#kind === "request" || !isOfHead) throw new BadMessage("a line feed without a carriage return");
    return text;
  }
}
