/** A client of a live connection for tests: the frames it has had, and the lines of each stream. */
import type { Json, TestDaemon } from "../daemon.ts";
import { until } from "../guests.ts";

export class LiveClient {
  readonly #socket: WebSocket;
  readonly #lines = new Map<number, string>();
  readonly said: Json[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #opened: Promise<void>;

  constructor(daemon: TestDaemon, headers: Record<string, string> = { authorization: `Bearer ${daemon.apiKey}` }) {
    this.#socket = new WebSocket(`${daemon.url.replace(/^http/, "ws")}/v1/live/ws`, { headers });
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onmessage = ({ data }) => {
      if (typeof data === "string") this.said.push(JSON.parse(data));
      else this.#take(Buffer.from(data as ArrayBuffer));
    };
    const opened = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<{ code: number; reason: string }>();
    this.#socket.onopen = () => opened.resolve();
    this.#socket.onclose = ({ code, reason }) => {
      closed.resolve({ code, reason });
      opened.reject(new Error(`not opened: ${code} ${reason}`));
    };
    this.#opened = opened.promise;
    this.closed = closed.promise;
    opened.promise.catch(() => {});
  }

  /** Rejects if the handshake is refused. */
  async open(): Promise<this> {
    await this.#opened;
    return this;
  }

  send(frame: object | string): void {
    this.#socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  /** The first frame about a stream. */
  async first(id: number, path?: string): Promise<Json> {
    if (path !== undefined) this.send({ op: "open", id, path });
    const found = () => this.said.find((frame) => frame.id === id);
    await until(`the frame with id ${id} has arrived`, () => found() !== undefined, 10_000);
    return found();
  }

  lines(id: number): Json[] {
    const whole = (this.#lines.get(id) ?? "").split("\n").slice(0, -1);
    return whole.map((line) => JSON.parse(line)).filter(({ type }) => type !== "ping");
  }

  async line(id: number, is: (line: Json) => boolean, ms = 10_000): Promise<Json> {
    await until(`the line with id ${id} has arrived`, () => this.lines(id).some(is), ms);
    return this.lines(id).find(is);
  }

  close(): void {
    this.#socket.close();
  }

  #take(frame: Buffer): void {
    const end = frame.indexOf(10);
    const id = Number(frame.subarray(0, end).toString());
    this.#lines.set(id, (this.#lines.get(id) ?? "") + frame.subarray(end + 1).toString());
  }
}
