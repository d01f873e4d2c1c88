/**
 * A long part of a file as a JSON response. It is read once for its facts (length, encoding, digest), and again as the client receives the
 * response: only one piece of it is in memory, however many clients there are and however slow they are. Data that a guest has changed
 * between the reads is not sent: the response is aborted.
 */
import { randomInt } from "node:crypto";
import { textStream } from "../../../core/call/text-stream.ts";
import type { PieceTurns } from "../../../core/loop/index.ts";
import { Hash } from "../../../host/files/hash.ts";
import type { OpenFile } from "../../../host/files/open-file.ts";

/** As JSON a piece is up to six times as long. A multiple of three, for base64. */
const PIECE_BYTES = 48 * 1024;
const MAX_SEED = 2 ** 48 - 1;

export interface LongPart {
  /** Fewer bytes than requested if the file has become shorter. */
  length: number;
  isText: boolean;
  sha256: string;
  /** The pieces of the response, in order. Throws if a piece has changed. */
  pieces(): AsyncGenerator<Uint8Array>;
}

/** Ends early with the signal. */
export async function lookThrough(
  file: OpenFile,
  { offset, length }: { offset: number; length: number },
  pieces: PieceTurns,
  signal: AbortSignal,
): Promise<LongPart> {
  using hash = new Hash();
  const decoder = newDecoder();
  const seed = randomInt(MAX_SEED);
  const marks: (number | bigint)[] = [];
  let isText = true;
  let found = 0;
  const pieceAt = (at: number, end: number) => file.read(offset + at, Math.min(PIECE_BYTES, end - at));
  while (found < length) {
    signal.throwIfAborted();
    await pieces.next();
    const bytes = await pieceAt(found, length);
    if (bytes.byteLength === 0) break;
    await hash.add(bytes);
    isText &&= isGood(() => decoder.decode(bytes, { stream: true }));
    marks.push(Bun.hash(bytes, seed));
    found += bytes.byteLength;
    if (bytes.byteLength < PIECE_BYTES) break;
  }
  isText &&= isGood(() => decoder.decode());
  return {
    length: found,
    isText,
    sha256: await hash.digest(),
    async *pieces() {
      let at = 0;
      for (const mark of marks) {
        const bytes = await pieceAt(at, found);
        if (Bun.hash(bytes, seed) !== mark) throw new Error("the file changed while it was read");
        at += bytes.byteLength;
        yield bytes;
      }
    },
  };
}

/** The text of the response: `before`, then `content` and `content_b64`, then `after`. The stream owns the file. */
export function longAnswer(
  file: OpenFile,
  part: LongPart,
  { before, after }: { before: object; after: object },
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  const close = async () => {
    signal.removeEventListener("abort", closeSoon);
    await file[Symbol.asyncDispose]();
  };
  // Makes the next read fail, and with it the stream.
  const closeSoon = () => void close().catch(() => {});
  signal.addEventListener("abort", closeSoon, { once: true });
  if (signal.aborted) closeSoon();
  return textStream(textOf(part, { before, after }), close);
}

async function* textOf(part: LongPart, { before, after }: { before: object; after: object }): AsyncGenerator<string> {
  yield `${JSON.stringify(before).slice(0, -1)},"content":`;
  if (part.isText) {
    const decoder = newDecoder();
    yield '"';
    for await (const bytes of part.pieces()) yield inJson(decoder.decode(bytes, { stream: true }));
    yield '"';
  } else {
    yield "null";
  }
  yield ',"content_b64":"';
  for await (const { buffer, byteOffset, byteLength } of part.pieces()) {
    yield Buffer.from(buffer, byteOffset, byteLength).toString("base64");
  }
  yield `",${JSON.stringify(after).slice(1)}`;
}

const inJson = (text: string) => JSON.stringify(text).slice(1, -1);

const newDecoder = () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function isGood(decode: () => unknown): boolean {
  try {
    decode();
    return true;
  } catch {
    return false;
  }
}
