/** One exchange with a server in a guest that is slow, cut, or done before its client. */
import { expect, test } from "vitest";
import type { OpenPort } from "../../../../daemon/domain/ports/connections.ts";

import { type ExchangeRequest, exchange, headOf } from "../../../../daemon/domain/ports/http/exchange.ts";
import { BadMessage } from "../../../../daemon/wire/http1/bad-message.ts";
import { StreamError } from "../../../../shared/agent-protocol/link.ts";

const GET: ExchangeRequest = { method: "GET", target: "/", headers: [["host", "localhost"]], body: null, length: null };
const HEAD = "HTTP/1.1 200 OK\r\n";

/** A connection to a server that sends this, and then nothing more. */
class Pretended implements OpenPort {
  readonly cutBecause = null;
  readonly #over = Promise.withResolvers<void>();
  readonly ended = this.#over.promise;
  readonly written: Buffer[] = [];
  readonly output: AsyncIterable<Uint8Array>;
  #more = Promise.withResolvers<string | null>();

  constructor(...pieces: string[]) {
    this.ended.catch(() => {});
    this.output = this.#says(pieces);
  }

  async *#says(pieces: string[]): AsyncGenerator<Uint8Array> {
    for (const each of pieces) yield Buffer.from(each, "latin1");
    for (let more = await this.#more.promise; more !== null; more = await this.#more.promise) {
      this.#more = Promise.withResolvers();
      yield Buffer.from(more, "latin1");
    }
  }

  /** The server sends more; null is its end. */
  says(more: string | null): void {
    this.#more.resolve(more);
  }
  async write(bytes: Uint8Array): Promise<void> {
    this.written.push(Buffer.from(bytes));
  }
  endInput(): void {
    this.#over.resolve();
  }
  close(): void {
    this.breaks("detached");
  }
  breaks(code: string): void {
    this.#more.resolve(null);
    this.#over.reject(new StreamError({ code, message: "" }));
  }
  pay(): null {
    return null;
  }
  hold(): boolean {
    return true;
  }
  get asked(): string {
    return Buffer.concat(this.written).toString("latin1");
  }
}

const ask = async (port: Pretended, overrides: Partial<ExchangeRequest> = {}) => {
  await port.write(headOf({ ...GET, ...overrides }));
  return await exchange(port, { ...GET, ...overrides }, new AbortController().signal);
};
const bodyOf = async (port: Pretended) => (await ask(port)).body as ReadableStream<Uint8Array>;

test("a client that reads nothing is released when the connection breaks", async () => {
  const port = new Pretended(`${HEAD}\r\nabc`);
  const { closed } = (await bodyOf(port)).getReader();
  const ends = closed.then(
    () => "closed",
    () => "broken",
  );
  port.close();
  expect(await ends).toBe("broken");
});

test("data received before a break is delivered, and is complete if its length matches", async () => {
  const long = "a".repeat(100_000);
  const port = new Pretended(`${HEAD}Content-Length: ${long.length}\r\n\r\n`, long);
  const body = await bodyOf(port);
  port.breaks("internal");
  expect(await new Response(body).text()).toBe(long);
  const short = new Pretended(`${HEAD}Content-Length: ${long.length + 1}\r\n\r\n`, long);
  const half = await bodyOf(short);
  short.breaks("internal");
  await expect(new Response(half).text()).rejects.toThrow();
});

test("a body of unknown length is sent in chunks, each in one piece", async () => {
  const port = new Pretended();
  const parts = ["hello", "", "x".repeat(17)];
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const part = parts.shift();
      if (part === undefined) controller.close();
      else controller.enqueue(Buffer.from(part));
    },
  });
  const asking = ask(port, { method: "POST", body });
  while (!port.asked.endsWith("0\r\n\r\n")) await new Promise(setImmediate);
  port.says(`${HEAD}Content-Length: 0\r\n\r\n`);
  await asking;
  expect(port.asked).toBe(
    `POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n11\r\n${"x".repeat(17)}\r\n0\r\n\r\n`,
  );
  expect(port.written).toHaveLength(4);
});

test.each([3, 20])("a body of %i bytes with a declared length of 10 ends the connection", async (bytes) => {
  const port = new Pretended();
  const body = new Blob([new Uint8Array(bytes)]).stream();
  await expect(ask(port, { method: "POST", body, length: 10 })).rejects.toThrow(BadMessage);
});
