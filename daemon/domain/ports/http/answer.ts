/** Parser of an HTTP/1 response of a guest's server: its head, bounded and strict, and the framing of its body. */
import { BadAnswer, type ByteReader } from "./byte-reader.ts";

/** Limit on the head with all its lines. */
const MAX_HEAD_BYTES = 64 * 1024;
const MAX_HEADERS = 256;
const MAX_INTERIM_ANSWERS = 16;
const MAX_CHUNK_LINE_BYTES = 1024;
const MAX_PIECE_BYTES = 256 * 1024;
/** Small chunks that have arrived together are passed on together, up to this: each by itself would cost more than its bytes. */
const MAX_TOGETHER = { pieces: 256, bytes: 16 * 1024 } as const;
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a value may not have
const FORBIDDEN = /[\u0000-\u0008\u000a-\u001f\u007f]/;

export type Framing = { kind: "none" } | { kind: "length"; bytes: number } | { kind: "chunked" } | { kind: "to_end" };

export interface AnswerHead {
  status: number;
  /** In order of arrival, names in lower case. */
  headers: [string, string][];
}

/** The final response's head; interim ones are skipped. Throws BadAnswer. */
export async function readHead(reader: ByteReader): Promise<AnswerHead> {
  for (let interim = 0; interim <= MAX_INTERIM_ANSWERS; interim++) {
    const head = await readOneHead(reader);
    if (head.status === 101 || head.status >= 200) return head;
  }
  throw new BadAnswer("the server sends interim answers only");
}

async function readOneHead(reader: ByteReader): Promise<AnswerHead> {
  let left = MAX_HEAD_BYTES;
  const line = async () => {
    const text = await reader.line(left);
    if (text === null) throw new BadAnswer("the server ended before its answer did");
    left -= text.length + 2;
    if (left < 0) throw new BadAnswer(`a head of over ${MAX_HEAD_BYTES} bytes`);
    return text;
  };
  const [, digits] = /^HTTP\/1\.[01] ([1-5]\d\d)(?: |$)/.exec(await line()) ?? [];
  if (digits === undefined) throw new BadAnswer("the first line is not HTTP/1");
  const headers: [string, string][] = [];
  for (let text = await line(); text !== ""; text = await line()) {
    const at = text.indexOf(":");
    const name = text.slice(0, Math.max(at, 0));
    const value = text.slice(at + 1).replace(/^[ \t]+|[ \t]+$/g, "");
    // A line that begins with a space continues the previous one (obsolete folding): implementations disagree on its meaning.
    if (!NAME.test(name) || FORBIDDEN.test(value)) throw new BadAnswer("an invalid header");
    headers.push([name.toLowerCase(), value]);
    if (headers.length > MAX_HEADERS) throw new BadAnswer(`over ${MAX_HEADERS} headers`);
  }
  return { status: Number(digits), headers };
}

/** Framing of the body. Throws BadAnswer if it is ambiguous. */
export function framingOf({ status, headers }: AnswerHead, method: string): Framing {
  const all = (name: string) => headers.filter(([each]) => each === name).map(([, value]) => value);
  const lengths = new Set(all("content-length"));
  const codings = all("transfer-encoding");
  if (codings.length > 0) {
    if (lengths.size > 0) throw new BadAnswer("both a length and a transfer coding");
    if (codings.length > 1 || codings[0]?.toLowerCase() !== "chunked") throw new BadAnswer("an unknown coding");
  }
  const [length] = lengths;
  if (lengths.size > 1 || (length !== undefined && !/^\d{1,15}$/.test(length)))
    throw new BadAnswer("an invalid length");
  if (method === "HEAD" || status === 204 || status === 304) return { kind: "none" };
  if (codings.length > 0) return { kind: "chunked" };
  return length === undefined ? { kind: "to_end" } : { kind: "length", bytes: Number(length) };
}

/** The body's bytes as they arrive. Throws BadAnswer if they end too early; with `to_end` that cannot be detected. */
export async function* readBody(reader: ByteReader, framing: Framing): AsyncGenerator<Uint8Array> {
  switch (framing.kind) {
    case "none":
      return;
    case "length":
      return yield* readExactly(reader, framing.bytes);
    case "chunked":
      return yield* readChunks(reader);
    case "to_end":
      for (let bytes = await reader.some(MAX_PIECE_BYTES); bytes; bytes = await reader.some(MAX_PIECE_BYTES))
        yield bytes;
  }
}

async function* readExactly(reader: ByteReader, count: number): AsyncGenerator<Uint8Array> {
  for (let left = count; left > 0; ) {
    const bytes = await reader.some(Math.min(left, MAX_PIECE_BYTES));
    if (!bytes) throw new BadAnswer("the server ended before the body did");
    left -= bytes.byteLength;
    yield bytes;
  }
}

async function* readChunks(reader: ByteReader): AsyncGenerator<Uint8Array> {
  const line = async () => {
    const text = await reader.line(MAX_CHUNK_LINE_BYTES);
    if (text === null) throw new BadAnswer("the server ended between chunks");
    return text;
  };
  const held = new Pieces();
  for (;;) {
    if (held.bytes > 0 && !reader.hasLine(MAX_CHUNK_LINE_BYTES)) yield held.take();
    const [, size] = /^([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?$/.exec(await line()) ?? [];
    if (size === undefined) throw new BadAnswer("a chunk without its size");
    if (Number.parseInt(size, 16) === 0) break;
    for (let left = Number.parseInt(size, 16); left > 0; ) {
      if (held.bytes > 0 && !reader.hasBytes) yield held.take();
      const bytes = await reader.some(Math.min(left, MAX_PIECE_BYTES));
      if (!bytes) throw new BadAnswer("the server ended before the body did");
      left -= bytes.byteLength;
      held.add(bytes);
      if (held.isFull) yield held.take();
    }
    if (held.bytes > 0 && !reader.hasLine(MAX_CHUNK_LINE_BYTES)) yield held.take();
    if ((await line()) !== "") throw new BadAnswer("a chunk that differs from its declared size");
  }
  if (held.bytes > 0) yield held.take();
  // Trailers are dropped: the client already has the head.
  for (let left = MAX_HEADERS; (await line()) !== ""; left--) {
    if (left === 0) throw new BadAnswer(`over ${MAX_HEADERS} headers`);
  }
}

/** Chunks that are held back only while more are already available. */
class Pieces {
  #all: Uint8Array[] = [];
  bytes = 0;

  get isFull(): boolean {
    return this.#all.length >= MAX_TOGETHER.pieces || this.bytes >= MAX_TOGETHER.bytes;
  }

  add(piece: Uint8Array): void {
    this.#all.push(piece);
    this.bytes += piece.byteLength;
  }

  take(): Uint8Array {
    const [first] = this.#all;
    const whole = this.#all.length === 1 && first ? first : Buffer.concat(this.#all);
    this.#all = [];
    this.bytes = 0;
    return whole;
  }
}
