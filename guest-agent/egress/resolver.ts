/**
 * Owns the guest's resolver: what every name in the guest is asked of. The host says whether there is such a name, and gets to
 * know no address of the guest's making; the address that is answered only stands for the name (names.ts).
 */
import { createSocket } from "node:dgram";
import { createServer, type Socket } from "node:net";
import type { EgressResolved } from "../../shared/agent-protocol/messages.ts";
import type { HostLine } from "../host-line.ts";
import { log } from "../log.ts";
import { type Question, RecordType, ResponseCode, readQuestion, writeAnswer } from "./dns-message.ts";
import type { Names } from "./names.ts";
import { OWN_ADDRESS, RESOLVER } from "./places.ts";

/** A resolver that takes longer is asked again by its clients anyway. */
const HOST_ANSWER_MS = 10_000;
const MOST_ASKED_AT_ONCE = 64;
const MOST_TCP_CLIENTS = 32;
const TCP_IDLE_MS = 10_000;
/** A query has one name, and a little of options. */
const MOST_QUERY_BYTES = 4096;

type Answer = EgressResolved["answer"];

export class Resolver {
  readonly #line: HostLine;
  readonly #names: Names;
  readonly #asked = new Map<string, Promise<Answer>>();
  #tcpClients = 0;

  constructor(line: HostLine, names: Names) {
    this.#line = line;
    this.#names = names;
  }

  /** Listens on UDP and TCP, for the guest's programs and for containers. */
  async listen(): Promise<void> {
    for (const address of [RESOLVER.address, OWN_ADDRESS]) await this.#listen(address);
  }

  async #listen(address: string): Promise<void> {
    const udp = createSocket("udp4");
    udp.on("message", (query, from) => {
      void this.#reply(query).then((reply) => reply && udp.send(reply, from.port, from.address));
    });
    udp.on("error", (error) => log("resolver", error));
    await new Promise<void>((done) => udp.bind(RESOLVER.port, address, done));
    const tcp = createServer((client) => this.#serve(client));
    tcp.on("error", (error) => log("resolver", error));
    await new Promise<void>((done) => tcp.listen(RESOLVER.port, address, done));
  }

  async #reply(query: Uint8Array): Promise<Uint8Array | null> {
    const question = readQuestion(query);
    return question && (await this.#answer(question));
  }

  async #answer(question: Question): Promise<Uint8Array> {
    if (question.name === "") return writeAnswer(question, ResponseCode.noSuchName, null);
    switch (await this.#ask(question.name)) {
      case "none":
        return writeAnswer(question, ResponseCode.noSuchName, null);
      case "failed":
        return writeAnswer(question, ResponseCode.failed, null);
      case "address":
        // Of other types there is nothing: no mail, no services, no keys, and no IPv6, which the host tries by itself.
        return writeAnswer(
          question,
          ResponseCode.ok,
          question.type === RecordType.A ? this.#names.addressOf(question.name) : null,
        );
    }
  }

  /** Asks the host, once for those who ask at the same time. */
  #ask(name: string): Promise<Answer> {
    const known = this.#asked.get(name);
    if (known) return known;
    if (this.#asked.size >= MOST_ASKED_AT_ONCE) return Promise.resolve("failed");
    const asked = this.#askHost(name).catch((): Answer => "failed");
    this.#asked.set(name, asked);
    void asked.finally(() => this.#asked.delete(name));
    return asked;
  }

  async #askHost(name: string): Promise<Answer> {
    const stream = this.#line.ask({ method: "egress_resolve", name });
    const timer = setTimeout(() => stream.fail("detached", "no answer in time"), HOST_ANSWER_MS);
    try {
      return (Object(await stream.finished) as EgressResolved).answer;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Over TCP each message has its length before it. */
  #serve(client: Socket): void {
    client.on("error", () => {});
    if (this.#tcpClients >= MOST_TCP_CLIENTS) return void client.destroy();
    this.#tcpClients++;
    client.once("close", () => this.#tcpClients--);
    client.setTimeout(TCP_IDLE_MS, () => client.destroy());
    let pending = Buffer.alloc(0);
    client.on("data", (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.byteLength >= 2) {
        const length = pending.readUInt16BE(0);
        if (length > MOST_QUERY_BYTES) return void client.destroy();
        if (pending.byteLength < 2 + length) return;
        const query = pending.subarray(2, 2 + length);
        pending = pending.subarray(2 + length);
        void this.#reply(query).then((reply) => {
          if (!reply) return client.destroy();
          const framed = Buffer.alloc(2 + reply.byteLength);
          framed.writeUInt16BE(reply.byteLength, 0);
          framed.set(reply, 2);
          client.write(framed);
        });
      }
    });
  }
}
