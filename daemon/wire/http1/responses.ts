/** Parser of the response to one HTTP/1 request, and its use by a pulling reader. */
import type { ByteQueue } from "../byte-queue.ts";
import type { ByteReader } from "../byte-reader.ts";
import { BadMessage } from "./bad-message.ts";
import { declaredFraming, type Framing, type Header, valuesOf } from "./headers.ts";
import { MessageParser } from "./message-parser.ts";

const START = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const MAX_INTERIM_ANSWERS = 16;
/** Small chunks that have arrived together are passed on together, up to this: each by itself would cost more than its bytes. */
const MAX_TOGETHER = { pieces: 256, bytes: 16 * 1024 } as const;

interface ResponseStart {
  status: number;
  minor: number;
}

/** Interim responses, such as 100 and 103, are not the last; 101 is: the connection then has another protocol. */
export interface ResponseHead extends ResponseStart {
  headers: Header[];
  framing: Framing;
  isLast: boolean;
}

export class ResponseParser extends MessageParser<ResponseStart, ResponseHead> {
  readonly #method: string;
  #interim = 0;

  /** `method` is the request's, on which the framing depends. */
  constructor(queue: ByteQueue, method: string, maxHeadBytes?: number) {
    super(queue, "answer", maxHeadBytes);
    this.#method = method;
  }

  protected readStart(line: string): ResponseStart {
    const [, minor, status] = START.exec(line) ?? [];
    if (status === undefined) throw new BadMessage("the first line is not HTTP/1");
    return { status: Number(status), minor: Number(minor) };
  }

  protected readHead(start: ResponseStart, headers: Header[]): ResponseHead {
    const isLast = start.status === 101 || start.status >= 200;
    if (!isLast && ++this.#interim > MAX_INTERIM_ANSWERS) throw new BadMessage("too many interim answers");
    // Some servers repeat the same length.
    const lengths = [...new Set(valuesOf(headers, "content-length"))];
    const declared = start.status < 200 ? null : declaredFraming(headers, start.minor, lengths);
    const hasNone = start.status < 200 || this.#method === "HEAD" || start.status === 204 || start.status === 304;
    const framing: Framing = hasNone ? { kind: "none" } : (declared ?? { kind: "to_end" });
    return { ...start, headers, framing, isLast };
  }
}

/** The head of the final response; interim ones are skipped. Throws BadMessage. */
export async function readHead(reader: ByteReader, parser: ResponseParser): Promise<ResponseHead> {
  for (;;) {
    await reader.charge();
    const part = parser.next() ?? ((await reader.more()) ? null : parser.finish());
    if (part?.kind === "head" && part.head.isLast) return part.head;
  }
}

/** The body's bytes as they arrive, without trailers. Throws BadMessage if they end too early; with `to_end` that cannot be detected. */
export async function* readBody(reader: ByteReader, parser: ResponseParser): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    await reader.charge();
    const part = parser.next();
    if (part?.kind === "data") {
      held.push(part.raw);
      bytes += part.raw.byteLength;
    }
    const isFull = held.length >= MAX_TOGETHER.pieces || bytes >= MAX_TOGETHER.bytes;
    // Chunks are held only while more are already available.
    if (held.length > 0 && (isFull || part === null || part.kind === "end")) {
      yield held.length === 1 ? (held[0] as Uint8Array) : Buffer.concat(held);
      [held, bytes] = [[], 0];
    }
    if (part?.kind === "end" || (part === null && !(await reader.more()) && parser.finish())) return;
  }
}
