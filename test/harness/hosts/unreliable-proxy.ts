/**
 * A proxy that fails as networks do: it drops answers, truncates them at a given length, answers 502 in the service's place, or passes
 * everything. The requests are recorded.
 */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The fault of a request: null passes it. */
type Fault =
  | null
  /** It never reaches the service. */
  | "refused"
  /** The service carries it out, and the answer is lost. */
  | "answer_lost"
  | { cutAfterBytes: number };

export interface Asked {
  method: string;
  path: string;
  idempotencyKey: string | undefined;
}

export class UnreliableProxy {
  readonly asked: Asked[] = [];
  /** Decides about each request; lets all through if absent. */
  fault: (request: Asked) => Fault = () => null;
  /** The same for a caller in another process. */
  readonly deeds = {
    /** Applies the fault to the next `times` requests. */
    happens: ({ times, fault }: { times: number; fault: Fault }): void => {
      let left = times;
      this.asked.length = 0;
      this.fault = () => (left-- > 0 ? fault : null);
    },
    asked: (): Asked[] => this.asked,
  };
  readonly #server: Server;
  /** The service's current address. */
  readonly #target: () => string;

  constructor(target: () => string) {
    this.#target = target;
    this.#server = createServer((from, to) => this.#pass(from, to));
  }

  async listen(address = "127.0.0.1"): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, address, resolve));
    return `http://${address}:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #pass(from: IncomingMessage, to: ServerResponse): void {
    const received = {
      method: from.method ?? "",
      path: from.url ?? "",
      idempotencyKey: from.headers["idempotency-key"] as string | undefined,
    };
    this.asked.push(received);
    const fault = this.fault(received);
    if (fault === "refused") {
      to.writeHead(502, { "Content-Type": "text/html" }).end("<h1>Bad gateway</h1>");
      return;
    }
    const { host: _, ...headers } = from.headers;
    const passed = request(
      `${this.#target()}${received.path}`,
      { method: received.method, headers, agent: false },
      (answer) => {
        if (fault === "answer_lost") {
          answer.resume().on("end", () => to.destroy());
          return;
        }
        to.writeHead(answer.statusCode ?? 0, answer.headers);
        let left = fault === null ? Number.POSITIVE_INFINITY : fault.cutAfterBytes;
        answer.on("data", (part: Buffer) => {
          to.write(part.subarray(0, left));
          left -= part.byteLength;
          // The client gets the passed part before the end.
          if (left <= 0) to.socket?.destroySoon();
        });
        answer.on("end", () => to.end());
        // The service has gone in the middle of it.
        for (const ended of ["error", "close"]) answer.on(ended, () => answer.complete || to.destroy());
        to.on("close", () => answer.destroy());
      },
    );
    passed.on("error", () => to.destroy());
    from.pipe(passed);
  }
}
