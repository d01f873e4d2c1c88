/**
 * One live connection: streams of the API over one WebSocket. Each stream is a separate call, which the HTTP transport answers like any
 * other, so that scopes, rates, audit and forwarding to other hosts are those of the call.
 *
 *     client  open ──▶ the transport answers ──▶ opened ──▶ data … ──▶ ended
 *                                └──▶ refused
 *
 * One frame at a time is in transit to the client, and each stream buffers one more at most: a client that does not read delays its
 * streams, and is disconnected after a minute.
 */
import {
  LIVE_CLOSE,
  MAX_LIVE_FRAME_BYTES,
  MAX_LIVE_STREAMS,
  MAX_UNREAD_BYTES,
} from "../../../shared/api/overview/live.ts";
import { startTimer, stopTimer, wallMs } from "../../core/clock.ts";
import type { DuplexSession, Peer } from "../../core/concurrency/duplex-session.ts";
import { countInTurn } from "../../core/concurrency/next-turn.ts";
import { loopTime, type OwnerName } from "../../core/loop/index.ts";
import { dataFrame, streamPathOf, wantedOf } from "./frames.ts";

/** Requests a stream, with the credentials of the connection. */
export type Ask = (path: string, signal: AbortSignal) => Promise<Response>;

const SLOW_MS = 60_000;
/** Requests for streams within one turn of the event loop, above which a client is disconnected: each costs a refusal. */
const MAX_OPENED_IN_A_TURN = 8 * MAX_LIVE_STREAMS;
/** A problem is shorter. */
const MAX_PROBLEM_BYTES = 64 * 1024;
/** Headers that a client receives in the first frame of a stream. */
const TOLD_HEADERS = ["date", "x-roomd-host"];

interface Stream {
  over: AbortController;
  /** Bytes that the client has not confirmed. */
  unread: number;
  /** Resolves the wait for a confirmation. */
  confirmed: PromiseWithResolvers<void> | null;
}

export class LiveConnection implements DuplexSession {
  readonly mostBytes = MAX_LIVE_FRAME_BYTES;
  readonly #streams = new Map<number, Stream>();
  readonly #over: () => void;
  readonly #owner: OwnerName;
  readonly #countOpened = countInTurn();
  #client: Peer | null = null;
  #ask: Ask | null = null;
  #isOver = false;
  /** Settles once the previous frame was sent. */
  #sent: Promise<void> = Promise.resolve();

  /** `over` is called once, when the connection has ended. `owner` is charged for the opening of streams. */
  constructor(owner: OwnerName, over: () => void) {
    this.#owner = owner;
    this.#over = over;
  }

  askBy(ask: Ask): void {
    this.#ask = ask;
  }

  start(client: Peer): void {
    this.#client = client;
  }

  hear(text: string): void {
    if (this.#isOver) return;
    const clientFrame = wantedOf(text);
    if (!clientFrame || (clientFrame.op === "open" && this.#streams.has(clientFrame.id))) {
      this.end("bad_frame", "invalid frame");
      return;
    }
    if (clientFrame.op === "close") this.#streams.get(clientFrame.id)?.over.abort();
    else if (clientFrame.op === "read") this.#confirm(clientFrame.id, clientFrame.bytes);
    else if (this.#countOpened() > MAX_OPENED_IN_A_TURN) this.end("bad_frame", "too many streams opened");
    else if (this.#streams.size >= MAX_LIVE_STREAMS) {
      this.#refuse(
        clientFrame.id,
        429,
        problemOf("rate_limited", `A connection carries at most ${MAX_LIVE_STREAMS} streams.`),
      );
    } else void this.#run(clientFrame.id, clientFrame.path);
  }

  take(): void {
    this.end("bad_frame", "binary frames are for data from the service");
  }

  left(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const { over } of this.#streams.values()) over.abort();
    this.#over();
  }

  end(code: keyof typeof LIVE_CLOSE, reason: string): void {
    if (this.#isOver) return;
    this.#client?.close(LIVE_CLOSE[code], reason);
    this.left();
  }

  async #run(id: number, path: string): Promise<void> {
    const over = new AbortController();
    const stream: Stream = { over, unread: 0, confirmed: null };
    this.#streams.set(id, stream);
    let isRefused = false;
    try {
      const streamPath = streamPathOf(path);
      if (streamPath === null || !this.#ask) {
        isRefused = true;
        const detail = "The path is not that of a stream which a live connection carries.";
        return this.#refuse(id, 404, problemOf("route_not_found", detail));
      }
      const turn = loopTime.enter(this.#owner, "live.open");
      if (turn) await turn;
      if (over.signal.aborted) return;
      const response = await this.#ask(streamPath, over.signal);
      if (!response.ok || !response.body) {
        await this.#tellRefusal(id, response);
        isRefused = true;
        return;
      }
      const headers = Object.fromEntries(TOLD_HEADERS.map((name) => [name, response.headers.get(name)]));
      headers.date ??= new Date(wallMs()).toUTCString();
      this.#say({ id, type: "opened", headers });
      await this.#carry(id, response.body, stream);
    } catch {
      // The stream broke off: the client reopens it.
    } finally {
      this.#streams.delete(id);
      over.abort();
      if (!isRefused) this.#say({ id, type: "ended" });
    }
  }

  async #carry(id: number, body: ReadableStream<Uint8Array>, stream: Stream): Promise<void> {
    const over = stream.over.signal;
    const reader = body.getReader();
    const stop = () => {
      reader.cancel().catch(() => {});
      stream.confirmed?.resolve();
    };
    over.addEventListener("abort", stop, { once: true });
    try {
      while (!over.aborted) {
        const { done, value } = await reader.read();
        if (done || over.aborted) return;
        stream.unread += value.length;
        await this.#send(dataFrame(id, value));
        if (stream.unread < MAX_UNREAD_BYTES || over.aborted) continue;
        stream.confirmed = Promise.withResolvers<void>();
        await stream.confirmed.promise;
      }
    } finally {
      over.removeEventListener("abort", stop);
      stop();
    }
  }

  #confirm(id: number, bytes: number): void {
    const stream = this.#streams.get(id);
    if (!stream) return;
    stream.unread = Math.max(0, stream.unread - bytes);
    if (stream.unread < MAX_UNREAD_BYTES) stream.confirmed?.resolve();
  }

  async #tellRefusal(id: number, response: Response): Promise<void> {
    const text = (await response.text()).slice(0, MAX_PROBLEM_BYTES);
    const retry_after = response.headers.get("retry-after");
    this.#say({ id, type: "refused", status: response.status, retry_after, problem: JSON.parse(text) as object });
  }

  #refuse(id: number, status: number, problem: object): void {
    this.#say({ id, type: "refused", status, retry_after: null, problem: { ...problem, status } });
  }

  #say(frame: object): void {
    if (!this.#isOver) this.#client?.say(JSON.stringify(frame));
  }

  /** Sends frames in the order of the calls; resolves once the frame was sent. */
  #send(frame: Uint8Array): Promise<void> {
    this.#sent = this.#sent.then(async () => {
      if (this.#isOver || !this.#client) return;
      const slow = startTimer(() => this.end("too_slow", "nothing was read for a minute"), SLOW_MS);
      try {
        await this.#client.send(frame);
      } finally {
        stopTimer(slow);
      }
    });
    return this.#sent;
  }
}

const problemOf = (code: string, detail: string) => ({
  code,
  title: detail,
  detail,
  retryable: false,
  details: {},
  errors: [],
});
