/**
 * The requests on an HTTP/1 connection, each followed to its end, so that every one of them is checked before its first byte is sent. An
 * offer of any protocol but WebSocket is removed from the request: the server responds in HTTP/1.
 *
 *     http ──head that upgrades to a WebSocket──▶ socket ──its end──▶ held ──101──▶ open   (held: nothing is sent until the response)
 *      ▲                                             └──any other response──┴───────▶ http
 *      └──any other request──┘
 */
import { ByteQueue } from "../../wire/byte-queue.ts";
import { BadMessage } from "../../wire/http1/bad-message.ts";
import { valuesOf } from "../../wire/http1/headers.ts";
import { type RequestHead, RequestParser } from "../../wire/http1/requests.ts";
import { ResponseParser } from "../../wire/http1/responses.ts";
import { readAddress } from "./addresses.ts";
import { canonicalName } from "./names.ts";

const MAX_HELD_BYTES = 64 * 1024;
const MAX_INTERIM_HEAD_BYTES = 8 * 1024;
const WEBSOCKET = "websocket";
const NOTHING = Buffer.alloc(0);
/** Fields that offer another protocol (RFC 9110, 7.8; RFC 7540, 3.2.1). They are hop-by-hop, so a proxy may remove them. */
const UPGRADES = new Set(["upgrade", "http2-settings"]);

export class HttpRequests {
  readonly #requireAllowed: (host: string) => void;
  readonly #queue = new ByteQueue();
  readonly #parser = new RequestParser(this.#queue);
  #phase: "http" | "socket" | "held" | "open" = "http";
  #requests = 0;
  /** The protocol that the first request asks to upgrade to, until its response has begun. */
  #asked: string | null = null;
  readonly #answer = new ByteQueue();
  readonly #answerParser = new ResponseParser(this.#answer, "GET", MAX_INTERIM_HEAD_BYTES);
  /** Number of parts inspected so far, each of which may have two bytes only. */
  steps = 0;

  /** `requireAllowed` throws if a request must not be sent to the host. */
  constructor(requireAllowed: (host: string) => void) {
    this.#requireAllowed = requireAllowed;
  }

  /** Number of following bytes that are not inspected. */
  get unseen(): number {
    if (this.#phase === "open") return Number.POSITIVE_INFINITY;
    return this.#queue.byteLength === 0 ? this.#parser.unread : 0;
  }

  /** Adds bytes from the client, and returns the bytes that may be sent now. Throws BadMessage. */
  push(bytes: Buffer): Buffer {
    this.#queue.push(bytes);
    const out: Buffer[] = [];
    for (let passed = this.#step(); passed !== null; passed = this.#step()) out.push(passed);
    if (this.#phase === "held" && this.#queue.byteLength > MAX_HELD_BYTES)
      throw new BadMessage("more data before the server has accepted the protocol switch");
    return Buffer.concat(out);
  }

  /** Adds bytes from the server, and returns the bytes that may be sent to it now. Throws BadMessage. */
  answered(bytes: Buffer): Buffer {
    if (this.#asked === null) return NOTHING;
    this.#answer.push(bytes);
    const status = this.#status();
    if (status === null) return NOTHING;
    const protocol = this.#asked;
    this.#asked = null;
    this.#answer.take(Number.POSITIVE_INFINITY);
    if (status === 101 && protocol !== WEBSOCKET) throw new BadMessage("a switch of the server to an unknown protocol");
    // The response precedes the end of the request's body, so it cannot be an upgrade.
    if (status === 101 && this.#phase !== "held") throw new BadMessage("a switch of the server that is too early");
    this.#phase = status === 101 ? "open" : "http";
    return this.push(NOTHING);
  }

  /** Takes one part from the queue; null if more bytes are needed. */
  #step(): Buffer | null {
    this.steps++;
    if (this.#phase === "open") return this.#queue.byteLength === 0 ? null : this.#queue.take(this.#queue.byteLength);
    if (this.#phase === "held") return null;
    const part = this.#parser.next();
    if (part?.kind === "head") return this.#head(part.head, part.raw);
    if (part?.kind === "end" && this.#phase === "socket") this.#phase = "held";
    return part?.kind === "blank" ? NOTHING : (part?.raw ?? null);
  }

  #head({ host, headers, framing }: RequestHead, raw: Buffer): Buffer {
    this.#requireAllowed(nameOf(host));
    // Some servers accept the field without the Connection field that should name it.
    const protocol = valuesOf(headers, "upgrade").join(",").toLowerCase();
    const isSocket = protocol === WEBSOCKET;
    // Only the first request's response can be identified.
    const isFirst = this.#requests++ === 0;
    if (isSocket && !isFirst) throw new BadMessage("a WebSocket must be its connection's first request");
    if (isSocket && framing.kind === "chunked") throw new BadMessage("a WebSocket upgrade has a chunked body");
    if (protocol === "") return raw;
    if (isFirst) this.#asked = protocol;
    if (!isSocket) return withoutUpgrade(raw);
    this.#phase = "socket";
    return raw;
  }

  /** Final status of the response, which needs the whole head of a 101 only; 0 if it is not HTTP, null if more bytes are needed. */
  #status(): number | null {
    try {
      for (;;) {
        const part = this.#answerParser.next();
        const status = this.#answerParser.start?.status ?? 0;
        if (status >= 200 || (status === 101 && part?.kind === "head")) return status;
        if (part === null) return null;
      }
    } catch (error) {
      if (this.#answerParser.start !== null) throw error;
      return 0;
    }
  }
}

/** The host in the form in which names are compared, or the address in its usual spelling. Throws BadMessage. */
function nameOf(host: string): string {
  // A server compares the bytes themselves.
  if (host.endsWith(".")) throw new BadMessage("a Host that ends with a dot");
  const found = readAddress(host)?.text ?? canonicalName(host);
  if (found === null) throw new BadMessage("an invalid Host");
  return found;
}

/** Removes the offer of another protocol from a valid head, which is otherwise unchanged. */
function withoutUpgrade(head: Buffer): Buffer {
  const [requestLine, ...lines] = head.toString("latin1").split("\r\n");
  const kept = lines.flatMap((line) => {
    const [name = "", value = ""] = line.split(/:(.*)/s);
    const field = name.toLowerCase();
    if (UPGRADES.has(field)) return [];
    if (field !== "connection") return [line];
    const options = value.split(",").map((option) => option.trim());
    const left = options.filter((option) => option !== "" && !UPGRADES.has(option.toLowerCase()));
    return left.length === 0 ? [] : [`${name}: ${left.join(", ")}`];
  });
  return Buffer.from([requestLine, ...kept].join("\r\n"), "latin1");
}
