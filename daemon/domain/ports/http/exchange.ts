/**
 * One HTTP/1 exchange with a server, for requests of edge/http/port-requests.ts and of hosts among each other: in a guest on a separate
 * connection, so that one client's data cannot confuse another's; on another host on a connection that is reused if no bytes remain on it.
 * Nothing large is buffered whole: backpressure applies from client to server and from server to client.
 */
import { StreamError } from "../../../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../../../shared/agent-protocol/messages.ts";
import { PORT_IDLE_SECONDS } from "../../../../shared/api/ports.ts";
import { startTimer, stopTimer, timeoutSignal } from "../../../core/clock.ts";
import { ByteReader } from "../../../wire/byte-reader.ts";
import { BadMessage } from "../../../wire/http1/bad-message.ts";
import { type ResponseHead, ResponseParser, readBody, readHead } from "../../../wire/http1/responses.ts";
import { LAST_CHUNK, serializeChunk, serializeHead } from "../../../wire/http1/serializer.ts";
import type { OpenPort } from "../connections.ts";

export interface ExchangeRequest {
  method: string;
  /** Path and query as sent to the server. */
  target: string;
  headers: readonly [string, string][];
  body: ReadableStream<Uint8Array> | null;
  /** Bytes of the body if known; null: it is sent in chunks. */
  length: number | null;
}

/** The functions of a connection that an exchange needs; `ended` is the end of the exchange if that comes first. */
export type Line = Pick<OpenPort, "output" | "pay" | "write" | "endInput" | "ended" | "close">;

/** Settings for a kind of server. */
export interface Manner {
  /** Idle timeout in both directions, which ends the exchange; null: none. */
  idleSeconds: number | null;
  /** Whether the end of the connection may end a body. */
  toEnd: boolean;
  /** Takes the connection for reuse, instead of its end, if all bytes of the exchange, and no others, were transferred. */
  keep?(): void;
}

const GUEST: Manner = { idleSeconds: PORT_IDLE_SECONDS, toEnd: true };

export interface ExchangeResponse {
  head: ResponseHead;
  /** Null if none exists. The stream fails if the server's does. */
  body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | null;
  /** The bytes after a head of 101, when HTTP has ended. */
  reader: ByteReader;
}

/** The exchange was ended because neither side sent anything for `idleSeconds`. */
export class Silence extends BadMessage {
  override name = "Silence";
}

/** A body of a known length up to this is read before it is passed on: Bun's server sends no length for a stream (oven-sh/bun#10507). */
const MAX_KEPT_BYTES = 64 * 1024;
/** Error codes of a connection that was closed by this host, or lost with its guest. */
const LOST: readonly string[] = [StreamErrorCode.detached, StreamErrorCode.link_closed];
/** Timeout for the server's end of a connection, which distinguishes an orderly end from a broken one. */
const END_MS = 5000;

/** The request's head, to be sent first on the connection. */
export function headOf(request: ExchangeRequest): Uint8Array {
  return serializeHead(`${request.method} ${request.target} HTTP/1.1`, [
    ...request.headers,
    ...framingHeaders(request),
  ]);
}

/**
 * Sends the rest of the request after its head, and returns the response. Rejects with BadMessage, or an error of the body that the client
 * sends. `gone` aborts when the client disconnects.
 */
export async function exchange(
  port: Line,
  request: ExchangeRequest,
  signal: AbortSignal,
  { idleSeconds, toEnd, keep }: Manner = GUEST,
): Promise<ExchangeResponse> {
  let isSilent = false;
  const silent = () => {
    isSilent = true;
    port.close();
  };
  const idle = idleSeconds === null ? null : startTimer(silent, idleSeconds * 1000);
  const close = () => port.close();
  signal.addEventListener("abort", close, { once: true });
  if (signal.aborted) close();
  const over = () => {
    stopTimer(idle);
    signal.removeEventListener("abort", close);
  };
  port.ended.then(over, over);
  const moved = (bytes: Uint8Array) => {
    idle?.refresh();
    return bytes;
  };
  const reader = new ByteReader(idle ? watched(port.output, moved) : port.output, port.pay);
  const sending = request.body === null ? null : new Sending(port, request.body, request.length, moved);
  let isKeepable = false;
  const done = (isWhole: boolean) => {
    const isClean = isWhole && isKeepable && (sending?.isSent ?? true) && reader.queue.byteLength === 0;
    sending?.stop();
    if (keep && isClean && !signal.aborted) keep();
    else port.close();
  };
  try {
    const parser = new ResponseParser(reader.queue, request.method);
    const head = await readHead(reader, parser);
    if (head.status === 101) {
      // The connection is now a bidirectional stream, which ends independently of the exchange.
      over();
      return { head, body: null, reader };
    }
    const { framing } = head;
    if (framing.kind === "to_end" && !toEnd) throw new BadMessage("a response without a declared end");
    isKeepable = framing.kind !== "to_end" && goesOn(head);
    if (framing.kind === "none" || (framing.kind === "length" && framing.bytes <= MAX_KEPT_BYTES)) {
      const kept = await wholeOf(readBody(reader, parser));
      done(true);
      return { head, body: framing.kind === "none" ? null : kept, reader };
    }
    const isWhole = framing.kind === "to_end" ? () => endedInOrder(port) : () => Promise.resolve(true);
    return { head, body: streamOf(port, readBody(reader, parser), isWhole, done), reader };
  } catch (error) {
    sending?.stop();
    port.close();
    throw isSilent ? new Silence("silence", { cause: error }) : error;
  }
}

/** Whether the server accepts another request on the connection. */
function goesOn({ headers }: ResponseHead): boolean {
  return !headers.some(([name, value]) => name === "connection" && /\bclose\b/i.test(value));
}

function framingHeaders({ body, length }: ExchangeRequest): [string, string][] {
  if (body === null) return length === 0 ? [["content-length", "0"]] : [];
  return [length === null ? ["transfer-encoding", "chunked"] : ["content-length", String(length)]];
}

async function wholeOf(body: AsyncIterable<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  for await (const bytes of body) parts.push(bytes);
  return Buffer.concat(parts);
}

async function* watched(source: AsyncIterable<Uint8Array>, moved: (bytes: Uint8Array) => Uint8Array) {
  for await (const bytes of source) yield moved(bytes);
}

/** Sends the client's body. The response may arrive, and end, before the body is sent. */
class Sending {
  readonly #read: () => Promise<Uint8Array | null>;
  readonly #abandon: () => void;
  #stopped = false;
  /** Whether the whole body was sent to the server. */
  isSent = false;

  constructor(
    port: Line,
    body: ReadableStream<Uint8Array>,
    length: number | null,
    moved: (bytes: Uint8Array) => unknown,
  ) {
    const reader = body.getReader();
    this.#read = async () => (await reader.read()).value ?? null;
    this.#abandon = () => void reader.cancel().catch(() => {});
    // Half a body is useless to the server; closing the connection signals it.
    this.#send(port, length, moved).catch(() => port.close());
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#abandon();
  }

  async #send(port: Line, length: number | null, moved: (bytes: Uint8Array) => unknown): Promise<void> {
    let sent = 0;
    this.isSent = length === 0;
    for (;;) {
      const bytes = await this.#read();
      if (this.#stopped) return;
      if (!bytes) break;
      if (bytes.byteLength === 0) continue;
      sent += bytes.byteLength;
      if (length !== null && sent > length) throw new Error("a body that is longer than declared");
      await port.write(length === null ? serializeChunk(bytes) : bytes);
      moved(bytes);
      // The end of the stream may arrive after the server's response.
      this.isSent = sent === length;
    }
    if (length === null) await port.write(LAST_CHUNK);
    else if (!this.isSent) throw new Error("a body that is shorter than declared");
    this.isSent = true;
  }
}

/** For a body that ends with the connection: whether the server ended it, or it broke. */
async function endedInOrder(port: Line): Promise<boolean> {
  port.endInput();
  const late = timeoutSignal(END_MS);
  const timeUp = new Promise<boolean>((resolve) =>
    late.addEventListener("abort", () => resolve(false), { once: true }),
  );
  return await Promise.race([
    port.ended.then(
      () => true,
      () => false,
    ),
    timeUp,
  ]);
}

function streamOf(
  port: Line,
  body: AsyncGenerator<Uint8Array>,
  isWhole: () => Promise<boolean>,
  done: (isWhole: boolean) => void,
): ReadableStream<Uint8Array> {
  let isOver = false;
  const end = (settle: () => void, isAll = false) => {
    if (isOver) return;
    isOver = true;
    done(isAll);
    settle();
  };
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => {
        // A client that has stopped reading does not pull either: its stream is released when the connection is lost. Data that the server
        // sent before it disconnected itself is still read: it may be the whole body.
        port.ended.catch((error: unknown) => {
          if (error instanceof StreamError && LOST.includes(error.code)) end(() => controller.error());
        });
      },
      pull: async (controller) => {
        try {
          const { done: isLast, value } = await body.next();
          if (!isLast) return isOver ? undefined : controller.enqueue(value);
          if (!(await isWhole())) throw new BadMessage("the connection broke");
          end(() => controller.close(), true);
        } catch {
          // Without a reason: the server would print it. The client's connection is reset, which shows that the body is incomplete.
          end(() => controller.error());
        }
      },
      cancel: () => end(() => {}),
    },
    { highWaterMark: 0 },
  );
}
