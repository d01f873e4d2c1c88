/**
 * The one WebSocket of a page, which carries all of its streams: a browser opens six connections of HTTP/1.1 to a service at most,
 * for all of its windows, and WebSockets are not among them. It is open while a stream is.
 */
import type { Problem } from "../../../shared/api/errors.ts";
import { ask, Refused, refusedBy, UNREACHABLE } from "./api.ts";

/** An answer that goes on, with the headers that a follower reads. */
export interface Stream {
  headers: Headers;
  /** Ends with the stream, whether or not it broke off. */
  body: AsyncIterable<Uint8Array>;
}

interface Listener {
  opened(headers: Record<string, string | null>): void;
  refused(problem: Problem, status: number): void;
  data(bytes: Uint8Array): void;
  ended(): void;
}

type Frame =
  | { id: number; type: "opened"; headers: Record<string, string | null> }
  | { id: number; type: "refused"; status: number; problem: Problem }
  | { id: number; type: "ended" };

const OPEN_MS = 5000;
/** A page that is left for another opens its streams at once. */
const UNUSED_MS = 2000;
/** Each stream is pinged every 15 s. A socket may be dead without having been closed. */
const SILENT_MS = 35_000;
const WATCH_MS = 5000;
const LINE_FEED = 10;

let connection: Promise<Connection> | null = null;

/** Throws Refused, and what `signal` was ended with. By a request of its own where no WebSocket can be opened. */
export async function openStream(path: string, signal: AbortSignal): Promise<Stream> {
  connection ??= connect();
  const opening = connection;
  const opened = await opening.catch(() => null);
  signal.throwIfAborted();
  if (opened) return await opened.open(path, signal);
  if (connection === opening) connection = null;
  const { headers, body } = await ask(path, { Accept: "application/x-ndjson" }, signal);
  return { headers, body: body ?? new ReadableStream<Uint8Array>() };
}

function connect(): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/v1/live/ws`);
    socket.binaryType = "arraybuffer";
    const timer = setTimeout(() => socket.close(), OPEN_MS);
    socket.onopen = () => {
      clearTimeout(timer);
      resolve(new Connection(socket));
    };
    socket.onclose = () => {
      clearTimeout(timer);
      reject(new Error("no connection"));
    };
  });
}

class Connection {
  readonly #socket: WebSocket;
  readonly #streams = new Map<number, Listener>();
  #last = 0;
  #unused: ReturnType<typeof setTimeout> | undefined;
  #heardAt = Date.now();
  readonly #watch: ReturnType<typeof setInterval>;
  readonly #drop = () => this.#socket.close();

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => this.#take(data);
    socket.onclose = () => this.#close();
    this.#watch = setInterval(() => {
      if (this.#streams.size > 0 && Date.now() - this.#heardAt > SILENT_MS) this.#close();
    }, WATCH_MS);
    addEventListener("offline", this.#drop);
  }

  async open(path: string, signal: AbortSignal): Promise<Stream> {
    clearTimeout(this.#unused);
    if (this.#streams.size === 0) this.#heardAt = Date.now();
    if (this.#socket.readyState !== WebSocket.OPEN) throw new Refused(UNREACHABLE);
    const id = ++this.#last;
    const opened = Promise.withResolvers<Headers>();
    const queue = new Queue();
    this.#streams.set(id, {
      opened: (headers) => opened.resolve(new Headers(Object.entries(headers).filter(isTold))),
      refused: (problem, status) => opened.reject(refusedBy(problem, status)),
      data: (bytes) => queue.add(bytes),
      ended: () => {
        opened.reject(new Refused(UNREACHABLE));
        queue.end(null);
      },
    });
    const leave = () => {
      opened.reject(signal.reason);
      queue.end(signal.reason);
      if (!this.#streams.delete(id)) return;
      this.#say({ op: "close", id });
      this.#rest();
    };
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
    this.#say({ op: "open", id, path });
    return { headers: await opened.promise, body: queue.taken((bytes) => this.#say({ op: "read", id, bytes })) };
  }

  #take(data: string | ArrayBuffer): void {
    this.#heardAt = Date.now();
    if (typeof data === "string") {
      this.#hear(JSON.parse(data) as Frame);
      return;
    }
    const bytes = new Uint8Array(data);
    const end = bytes.indexOf(LINE_FEED);
    const id = Number(new TextDecoder().decode(bytes.subarray(0, end)));
    this.#streams.get(id)?.data(bytes.subarray(end + 1));
  }

  #hear(frame: Frame): void {
    const stream = this.#streams.get(frame.id);
    if (frame.type === "opened") {
      stream?.opened(frame.headers);
      return;
    }
    this.#streams.delete(frame.id);
    if (frame.type === "refused") stream?.refused(frame.problem, frame.status);
    else stream?.ended();
    this.#rest();
  }

  #say(frame: object): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame));
  }

  #rest(): void {
    clearTimeout(this.#unused);
    if (this.#streams.size === 0) this.#unused = setTimeout(() => this.#socket.close(), UNUSED_MS);
  }

  /** The end of a dead socket is not waited for. */
  #close(): void {
    clearTimeout(this.#unused);
    clearInterval(this.#watch);
    removeEventListener("offline", this.#drop);
    this.#socket.onclose = null;
    this.#socket.close();
    connection = null;
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.ended();
  }
}

const isTold = (header: [string, string | null]): header is [string, string] => header[1] !== null;

/** Data that has come and is not processed. The service sends no more while too much of it waits. */
class Queue {
  readonly #waiting: Uint8Array[] = [];
  #over: { reason: unknown } | null = null;
  #wake: () => void = () => {};

  add(bytes: Uint8Array): void {
    this.#waiting.push(bytes);
    this.#wake();
  }

  /** With null at the end of the stream, else with what is thrown. */
  end(reason: unknown): void {
    this.#over ??= { reason };
    this.#wake();
  }

  async *taken(confirm: (bytes: number) => void): AsyncGenerator<Uint8Array> {
    for (;;) {
      const bytes = this.#waiting.shift();
      if (bytes) {
        yield bytes;
        confirm(bytes.length);
      } else if (this.#over) {
        if (this.#over.reason !== null) throw this.#over.reason;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
