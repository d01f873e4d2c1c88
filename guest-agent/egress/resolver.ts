/**
 * The guest's DNS resolver, which all programs in the guest query. The host decides whether a name exists, and never sees the guest's
 * placeholder addresses; the address in an answer only stands for the name (names.ts). SRV, TXT and MX answers come from the host.
 */
import { createSocket } from "node:dgram";
import { createServer, type Socket } from "node:net";
import { StreamError } from "../../shared/agent-protocol/link.ts";
import {
  type DnsRecord,
  type EgressRecords,
  type EgressResolved,
  StreamErrorCode,
} from "../../shared/agent-protocol/messages.ts";
import type { HostConnection } from "../host-connection.ts";
import { log } from "../log.ts";
import { type Question, RecordType, ResponseCode, readQuestion, writeAnswer, writeRecords } from "./dns-message.ts";
import type { Names } from "./names.ts";
import { OWN_ADDRESS, RESOLVER } from "./places.ts";

/** After that long, clients retry anyway. */
const HOST_ANSWER_MS = 10_000;
/** The host processes 400 look-ups per second; some of them wait for DNS. */
const MAX_ASKED_AT_ONCE = 256;
const MAX_TCP_CLIENTS = 32;
const TCP_IDLE_MS = 10_000;
/** A query contains one name and a few options. */
const MAX_QUERY_BYTES = 4096;

/** Over TCP, a message is as long as its length field allows. */
const MAX_TCP_BYTES = 65_535;
const TYPES: ReadonlyMap<number, DnsRecord["type"]> = new Map([
  [RecordType.SRV, "SRV"],
  [RecordType.TXT, "TXT"],
  [RecordType.MX, "MX"],
]);

type ResolverAnswer = EgressResolved["answer"];

export class Resolver {
  readonly #line: HostConnection;
  readonly #names: Names;
  readonly #asked = new Map<string, Promise<ResolverAnswer>>();
  /** Number of questions that the host has not answered yet. */
  #waiting = 0;
  #tcpClients = 0;

  constructor(line: HostConnection, names: Names) {
    this.#line = line;
    this.#names = names;
  }

  /** Listens on UDP and TCP, for programs of the guest and for containers. */
  async listen(): Promise<void> {
    for (const address of [RESOLVER.address, OWN_ADDRESS]) await this.#listen(address);
  }

  async #listen(address: string): Promise<void> {
    const udp = createSocket("udp4");
    udp.on("message", (query, from) => {
      void this.#reply(query, false).then((reply) => reply && udp.send(reply, from.port, from.address));
    });
    udp.on("error", (error) => log("resolver", error));
    await new Promise<void>((done) => udp.bind(RESOLVER.port, address, done));
    const tcp = createServer((client) => this.#serve(client));
    tcp.on("error", (error) => log("resolver", error));
    await new Promise<void>((done) => tcp.listen(RESOLVER.port, address, done));
  }

  async #reply(query: Uint8Array, byTcp: boolean): Promise<Uint8Array | null> {
    const question = readQuestion(query);
    return question && (await this.#answer(question, byTcp ? MAX_TCP_BYTES : question.udpBytes));
  }

  async #answer(question: Question, mostBytes: number): Promise<Uint8Array> {
    if (question.name === "") return writeAnswer(question, ResponseCode.noSuchName, null);
    const type = TYPES.get(question.type);
    const found = type && (await this.#records(question.name, type));
    if (found) {
      const code = { found: ResponseCode.ok, none: ResponseCode.noSuchName, failed: ResponseCode.failed }[found.answer];
      if (code !== ResponseCode.ok) return writeAnswer(question, code, null);
      return writeRecords(question, found.records, mostBytes);
    }
    switch (await this.#ask(question.name)) {
      case "none":
        return writeAnswer(question, ResponseCode.noSuchName, null);
      case "failed":
        return writeAnswer(question, ResponseCode.failed, null);
      case "address":
        // Other types have no records: no keys, and no IPv6, which the host tries itself.
        return writeAnswer(
          question,
          ResponseCode.ok,
          question.type === RecordType.A ? this.#names.addressOf(question.name) : null,
        );
    }
  }

  /** Null from a host that supports only address records. */
  async #records(name: string, type: DnsRecord["type"]): Promise<EgressRecords | null> {
    try {
      return (await this.#within({ method: "egress_records", name, type })) as EgressRecords;
    } catch (error) {
      const isUnknown = error instanceof StreamError && error.code === StreamErrorCode.unknown_method;
      return isUnknown ? null : { answer: "failed", records: [] };
    }
  }

  /** Queries the host; concurrent queries for a name share one request (single-flight). */
  #ask(name: string): Promise<ResolverAnswer> {
    const known = this.#asked.get(name);
    if (known) return known;
    const lookup = this.#askHost(name).catch((): ResolverAnswer => "failed");
    this.#asked.set(name, lookup);
    void lookup.finally(() => this.#asked.delete(name));
    return lookup;
  }

  async #askHost(name: string): Promise<ResolverAnswer> {
    return (Object(await this.#within({ method: "egress_resolve", name })) as EgressResolved).answer;
  }

  async #within(request: Parameters<HostConnection["ask"]>[0]): Promise<unknown> {
    if (this.#waiting >= MAX_ASKED_AT_ONCE) throw new Error("too many concurrent queries");
    this.#waiting++;
    let timer: Timer | undefined;
    try {
      const stream = this.#line.ask(request);
      timer = setTimeout(() => stream.fail("detached", "no answer in time"), HOST_ANSWER_MS);
      return await stream.finished;
    } finally {
      clearTimeout(timer);
      this.#waiting--;
    }
  }

  /** Over TCP, each message is preceded by its length. */
  #serve(client: Socket): void {
    client.on("error", () => {});
    if (this.#tcpClients >= MAX_TCP_CLIENTS) return void client.destroy();
    this.#tcpClients++;
    client.once("close", () => this.#tcpClients--);
    client.setTimeout(TCP_IDLE_MS, () => client.destroy());
    let pending = Buffer.alloc(0);
    client.on("data", (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.byteLength >= 2) {
        const length = pending.readUInt16BE(0);
        if (length > MAX_QUERY_BYTES) return void client.destroy();
        if (pending.byteLength < 2 + length) return;
        const query = pending.subarray(2, 2 + length);
        pending = pending.subarray(2 + length);
        void this.#reply(query, true).then((reply) => {
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
