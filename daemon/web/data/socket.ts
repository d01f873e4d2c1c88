/**
 * The single WebSocket of a page, which carries all of its streams: a browser opens at most six HTTP/1.1 connections to a service, for all
 * of its windows, and WebSockets do not count. It is open while a stream is.
 */
import type { Problem } from "../../../shared/api/errors.ts";
import { ask, Refused, refusedBy, UNREACHABLE } from "./api.ts";

/** A streamed response, with the headers that a follower reads. */
export interface Stream {
  headers: Headers;
  /** Ends with the stream, whether or not it broke off. */
  body: AsyncIterable<Uint8Array>;
}

interface Listener {
  opened(headers: Headers): void;
  data(bytes: Uint8Array): void;
  /** Called with null if an opened stream has ended. */
  ended(error: unknown): void;
}

type Frame =
  | { id: number; type: "opened"; headers: Record<string, string | null> }
  | { id: number; type: "refused"; status: number; problem: Problem }
  | { id: number; type: "ended" };

const OPEN_MS = 5000;
/** A page that replaces another opens its streams immediately. */
const UNUSED_MS = 2000;
/** Each stream is pinged every 15 s. A dead socket may not have been closed. */
const SILENT_MS = 35_000;
/** Close code of the service when the session has ended. */
const UNAUTHORIZED = 4002;
const LINE_FEED = 10;

let connection: Promise<Connection> | null = null;
/** The session has ended: a request returns the reason, which a browser does not report for a refused socket. */
let isRefused = false;

/** Throws Refused, and the reason of `signal`. Falls back to a separate request if no WebSocket can be opened. */
export async function openStream(path: string, signal: AbortSignal): Promise<Stream> {
  const byRequest = () => ask(path, { Accept: "application/x-ndjson" }, signal);
  if (isRefused) {
    const { body } = await byRequest();
    void body?.cancel();
    isRefused = false;
  }
  connection ??= connect();
  const opening = connection;
  const opened = await opening.catch(() => null);
  signal.throwIfAborted();
  if (opened) return await opened.open(path, signal);
  if (connection === opening) connection = null;
  const { headers, body } = await byRequest();
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
  readonly #drop = () => this.#close();

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => this.#take(data);
    socket.onclose = ({ code }) => {
      isRefused = code === UNAUTHORIZED;
      this.#close();
    };
    addEventListener("offline", this.#drop);
  }

  async open(path: string, signal: AbortSignal): Promise<Stream> {
    clearTimeout(this.#unused);
    if (this.#streams.size === 0) this.#heardAt = Date.now();
    const id = ++this.#last;
    const opened = Promise.withResolvers<Headers>();
    let isOver = false;
    const data = new ReadableStream<Uint8Array>({
      start: (queue) => {
        this.#streams.set(id, {
          opened: opened.resolve,
          data: (bytes) => {
            if (!isOver) queue.enqueue(bytes);
          },
          ended: (error) => {
            if (isOver) return;
            isOver = true;
            opened.reject(error ?? new Refused(UNREACHABLE));
            if (error === null) queue.close();
            else queue.error(error);
          },
        });
      },
      cancel: () => {
        isOver = true;
      },
    });
    const leave = () => {
      const stream = this.#streams.get(id);
      if (!stream) return;
      this.#streams.delete(id);
      stream.ended(signal.reason);
      if (Date.now() - this.#heardAt > SILENT_MS) this.#close();
      else this.#say({ op: "close", id });
      this.#rest();
    };
    signal.addEventListener("abort", leave);
    this.#say({ op: "open", id, path });
    return { headers: await opened.promise, body: this.#confirmed(id, data) };
  }

  /** Confirms bytes as they are consumed: the service sends no more while too many are unconfirmed. */
  async *#confirmed(id: number, data: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const bytes of data) {
      yield bytes;
      this.#say({ op: "read", id, bytes: bytes.length });
    }
  }

  #take(data: string | ArrayBuffer): void {
    this.#heardAt = Date.now();
    if (typeof data !== "string") {
      const bytes = new Uint8Array(data);
      const end = bytes.indexOf(LINE_FEED);
      const id = Number(new TextDecoder().decode(bytes.subarray(0, end)));
      this.#streams.get(id)?.data(bytes.subarray(end + 1));
      return;
    }
    const frame = JSON.parse(data) as Frame;
    const stream = this.#streams.get(frame.id);
    if (frame.type === "opened") {
      stream?.opened(new Headers(Object.entries(frame.headers).filter(isPresent)));
      return;
    }
    this.#streams.delete(frame.id);
    stream?.ended(frame.type === "refused" ? refusedBy(frame.problem, frame.status) : null);
    this.#rest();
  }

  #say(frame: object): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame));
  }

  #rest(): void {
    clearTimeout(this.#unused);
    if (this.#streams.size > 0) return;
    this.#unused = setTimeout(this.#drop, document.hidden ? 0 : UNUSED_MS);
  }

  /** Does not wait for the end of a dead socket. */
  #close(): void {
    clearTimeout(this.#unused);
    removeEventListener("offline", this.#drop);
    this.#socket.onclose = null;
    this.#socket.close();
    connection = null;
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.ended(null);
  }
}

const isPresent = (header: [string, string | null]): header is [string, string] => header[1] !== null;
