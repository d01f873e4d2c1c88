/** A service that sends the replies of a test, and records its requests. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Reply {
  status: number;
  headers: Record<string, string>;
  text: string;
  /** The service no longer listens after this reply. */
  isLast?: true;
}

export interface Asked {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** Time of arrival in ms. */
  at: number;
  /** Once all of it has come. */
  body: string;
}

export const JSON_TYPE = { "Content-Type": "application/json" };

/** A response that is interrupted. */
export const BROKEN: Reply = { status: 200, headers: { ...JSON_TYPE, "Content-Length": "99" }, text: "{" };
/** The connection closes before a response. */
export const CLOSED: Reply = { status: 0, headers: {}, text: "" };

/** A response that starts, and never ends. */
export const stalled = (status: number, headers: Record<string, string>, text = "{"): Reply => ({
  status,
  headers: { ...headers, "Content-Length": "9999", "X-Stalls": "1" },
  text,
});

export const ok = (value: unknown): Reply => ({ status: 200, headers: JSON_TYPE, text: JSON.stringify(value) });
export const problem = (status: number, code: string, retryable: boolean, retryAfter = "0", details = {}): Reply => ({
  status,
  headers: { "Content-Type": "application/problem+json", "Retry-After": retryAfter },
  text: JSON.stringify({
    ...{ status, code, retryable, detail: `${code}.`, hint: null, request_id: "req_1", details, errors: [] },
  }),
});
export const lines = (...events: object[]): Reply => ({
  status: 200,
  headers: { "Content-Type": "application/x-ndjson" },
  text: events.map((event) => `${JSON.stringify(event)}\n`).join(""),
});

export class ScriptedService {
  readonly asked: Asked[] = [];
  /** How many connections are open. */
  connections = 0;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Null is no answer at all. A text shorter than its Content-Length is cut; with X-Stalls nothing more comes of it. */
  static async start(answer: (request: Asked) => Reply | null, port = 0): Promise<ScriptedService> {
    const server = createServer();
    const service = new ScriptedService(server);
    server.on("connection", (socket) => {
      service.connections++;
      socket.on("close", () => service.connections--);
    });
    server.on("request", (request, response) => {
      const { method = "", url: path = "", headers: received } = request;
      const recorded = { method, path, headers: received, at: performance.now(), body: "" };
      service.asked.push(recorded);
      request.setEncoding("utf8");
      request.on("data", (text: string) => {
        recorded.body += text;
      });
      request.on("end", () => {
        const reply = answer(recorded);
        if (reply === null) return;
        const { status, headers, text, isLast } = reply;
        if (isLast) server.close();
        if (status === 0) return void response.destroy();
        response.writeHead(status, headers);
        if (headers["Content-Length"] === undefined) response.end(text);
        else if (headers["X-Stalls"] !== undefined) response.write(text);
        else response.write(text, () => response.destroy());
      });
    });
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    return service;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Of each call the part of its body, as JSON. */
  bodies(): Record<string, unknown>[] {
    return this.asked.filter(({ body }) => body !== "").map(({ body }) => JSON.parse(body));
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
