/** Test clients of exposed ports: calls with the port's token, sockets that do not read, WebSockets. */
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { within } from "../../daemon/core/concurrency/published.ts";
import type { Json, TestDaemon } from "./daemon.ts";

const SERVER = join(import.meta.dirname, "../fixtures/port-server.py");

export class ExposedPort {
  readonly #daemon: TestDaemon;
  readonly sandbox: string;
  readonly record: Json;

  constructor(daemon: TestDaemon, sandbox: string, record: Json) {
    this.#daemon = daemon;
    this.sandbox = sandbox;
    this.record = record;
  }

  static async expose(daemon: TestDaemon, sandbox: string, body: object): Promise<ExposedPort> {
    return new ExposedPort(daemon, sandbox, await daemon.ok("POST", `/v1/rooms/${sandbox}/ports`, body));
  }

  /** Its current URL: a restarted daemon listens on another port. */
  get url(): string {
    return this.#daemon.url + new URL(this.record.path_url).pathname;
  }

  get token(): Record<string, string> {
    return this.record.token === null ? {} : { "x-port-token": this.record.token };
  }

  async fetch(path: string, init: RequestInit & { duplex?: "half" } = {}): Promise<Response> {
    const headers = { ...this.token, ...(init.headers as Record<string, string>) };
    return await fetch(this.url + path, { redirect: "manual", ...init, headers });
  }

  async json(path: string, init?: RequestInit): Promise<Json> {
    return await (await this.fetch(path, init)).json();
  }

  /** A client that sends `head`, and does not read until it is resumed. */
  raw(head: string): Socket {
    const { hostname, port, host, pathname } = new URL(this.url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on("error", () => {});
    socket.pause();
    const [first = "", ...lines] = head.split("\r\n");
    const token = Object.entries(this.token).map(([name, value]) => `${name}: ${value}`);
    const request = [first.replace(" /", ` ${pathname}`), `Host: ${host}`, ...token, ...lines, "", ""];
    socket.write(request.join("\r\n"));
    return socket;
  }

  async socket(path: string, options: { protocols?: string[]; headers?: Record<string, string> } = {}) {
    const headers = options.headers ?? this.token;
    return await PortSocket.open(this.url + path, { ...options, headers });
  }

  /** Starts the fixture's server in the sandbox, on this port and others; it listens. */
  async serve(...others: number[]): Promise<void> {
    const [room = "", , agent = ""] = this.sandbox.split("/");
    const content = readFileSync(SERVER, "utf8");
    await this.#daemon.ok("POST", `/v1/rooms/${room}/drive/write`, { path: "/port-server.py", content });
    const ports = [this.record.port, ...others].join(" ");
    await this.#daemon.sh(room, agent, `python3 -S -E -s /mnt/drive/port-server.py --aside ${ports}`);
  }
}

/** One WebSocket, with the messages it received. */
export class PortSocket {
  readonly socket: WebSocket;
  readonly #messages: (string | Buffer)[] = [];
  #waiting: PromiseWithResolvers<void> | null = null;
  readonly closed: Promise<{ code: number; reason: string }>;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      this.#messages.push(typeof data === "string" ? data : Buffer.from(data));
      this.#waiting?.resolve();
    };
    this.closed = new Promise((resolve) => {
      socket.onclose = ({ code, reason }) => resolve({ code, reason });
    });
  }

  /** By http URL. Rejects when it is refused. */
  static async open(url: string, options: object = {}): Promise<PortSocket> {
    const socket = new WebSocket(url.replace(/^http/, "ws"), options as never);
    const opened = new PortSocket(socket);
    const isOpen = new Promise<true>((resolve) => {
      socket.onopen = () => resolve(true);
    });
    const ended = await Promise.race([isOpen, opened.closed]);
    if (ended !== true) throw new Error(`not opened: ${ended.code} ${ended.reason}`);
    return opened;
  }

  /** The next message that has not been taken yet. */
  async next(deadlineMs = 15_000): Promise<string | Buffer> {
    while (this.#messages.length === 0) {
      this.#waiting = Promise.withResolvers<void>();
      await within(this.#waiting.promise, deadlineMs, "a message");
    }
    return this.#messages.shift() ?? "";
  }
}
