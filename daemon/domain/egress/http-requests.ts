/**
 * The requests on an HTTP/1 connection, each followed to its end, so that every one of them is checked before its first byte is sent. An
 * offer of any protocol but WebSocket is removed from the request: the server responds in HTTP/1.
 *
 *     head ──whole, and for the right host──▶ body ──its end──▶ head
 *       └─ upgrades to a WebSocket ─▶ held ──101──▶ open       (held: nothing is sent until the server has responded)
 *                                    └──else──▶ head
 */
import { BadRequest, readHead, requireRequestLine, withoutUpgrade } from "./http-head.ts";
import { Pending } from "./pending.ts";

const MAX_HEAD_BYTES = 64 * 1024;
const MAX_CHUNK_LINE_BYTES = 256;
/** Of one interim answer. */
const MAX_INTERIM_BYTES = 8 * 1024;
const LF = "\n";
const LINE_END = "\r\n";
const WEBSOCKET = "websocket";
const HEAD_END = "\r\n\r\n";
/** Interim responses, such as 100 and 103; 101 is not one. */
const INTERIM = /^HTTP\/1\.1 1(?!01)\d\d[ \r]/;
/** Response of a server that switches to another protocol. */
const SWITCHES = /^HTTP\/1\.1 101[ \r]/;
/** Bytes needed to classify a response. */
const STATUS_BYTES = 13;

type State =
  | { at: "head" }
  | { at: "body"; left: number; next: "head" | "held" | "chunk_end" }
  | { at: "chunk" }
  | { at: "chunk_end" }
  | { at: "trailer" }
  | { at: "held" }
  | { at: "open" };

export class HttpRequests {
  readonly #isAllowed: (host: string) => boolean;
  #state: State = { at: "head" };
  readonly #pending = new Pending();
  #requests = 0;
  /** Whether the request line of the head in progress was checked. */
  #hasLine = false;
  /** The protocol that the current request asks to upgrade to, until its response has begun. */
  #asked: string | null = null;
  #answer: Buffer = Buffer.alloc(0);
  /** Number of parts inspected so far, each of which may have two bytes only. */
  steps = 0;

  constructor(isAllowed: (host: string) => boolean) {
    this.#isAllowed = isAllowed;
  }

  /** Number of following bytes that are not inspected. */
  get unseen(): number {
    const state = this.#state;
    if (state.at === "open") return Number.POSITIVE_INFINITY;
    return state.at === "body" && this.#pending.byteLength === 0 ? state.left : 0;
  }

  /** Adds bytes from the client, and returns the bytes that may be sent now. Throws BadRequest. */
  push(bytes: Buffer): Buffer {
    this.#pending.push(bytes);
    const out: Buffer[] = [];
    for (let passed = this.#step(); passed !== null; passed = this.#step()) out.push(passed);
    const tooMuch = this.#state.at === "held" && this.#pending.byteLength > MAX_HEAD_BYTES;
    if (tooMuch) throw new BadRequest("it continues before the server has accepted the protocol switch");
    return Buffer.concat(out);
  }

  /** Adds bytes from the server, and returns the bytes that may be sent to it now. Throws BadRequest. */
  answered(bytes: Buffer): Buffer {
    if (this.#asked === null) return Buffer.alloc(0);
    this.#answer = Buffer.concat([this.#answer, bytes]);
    const status = this.#takeStatus();
    if (status === null) return Buffer.alloc(0);
    const switches = SWITCHES.test(status);
    const protocol = this.#asked;
    this.#asked = null;
    this.#answer = Buffer.alloc(0);
    if (switches && protocol !== WEBSOCKET) throw new BadRequest("the server switches to an unknown protocol");
    if (this.#state.at !== "held") {
      // The response precedes the end of the request's body, so it cannot be an upgrade.
      if (switches) throw new BadRequest("the server switches to another protocol too early");
      if (this.#state.at === "body" && this.#state.next === "held") this.#state.next = "head";
      return Buffer.alloc(0);
    }
    this.#state = switches ? { at: "open" } : { at: "head" };
    return this.push(Buffer.alloc(0));
  }

  /** Start of the last response, after all interim ones; null if more bytes are needed. */
  #takeStatus(): string | null {
    for (;;) {
      if (this.#answer.byteLength < STATUS_BYTES) return null;
      const status = this.#answer.toString("latin1", 0, STATUS_BYTES);
      if (!INTERIM.test(status)) return status;
      const end = this.#answer.indexOf(HEAD_END);
      if (end === -1 && this.#answer.byteLength > MAX_INTERIM_BYTES)
        throw new BadRequest("the server's interim answer is too long");
      if (end === -1) return null;
      this.#answer = this.#answer.subarray(end + HEAD_END.length);
    }
  }

  /** Takes one part from the pending bytes; null if more bytes are needed. */
  #step(): Buffer | null {
    this.steps++;
    const state = this.#state;
    switch (state.at) {
      case "open":
        return this.#pending.byteLength === 0 ? null : this.#pending.take(this.#pending.byteLength);
      case "held":
        return null;
      case "head":
        return this.#head();
      case "body": {
        if (state.left === 0) {
          this.#state = state.next === "chunk_end" ? { at: "chunk_end" } : { at: state.next };
          return Buffer.alloc(0);
        }
        if (this.#pending.byteLength === 0) return null;
        const taken = this.#pending.take(Math.min(state.left, this.#pending.byteLength));
        state.left -= taken.byteLength;
        return taken;
      }
      case "chunk": {
        const line = this.#line(MAX_CHUNK_LINE_BYTES);
        if (line === null) return null;
        const size = /^([0-9a-fA-F]{1,12})(?:[ \t]*;[\x20-\x7e]*)?$/.exec(line)?.[1];
        if (size === undefined) throw new BadRequest("a chunk of its body has no length");
        const left = Number.parseInt(size, 16);
        this.#state = left === 0 ? { at: "trailer" } : { at: "body", left, next: "chunk_end" };
        return Buffer.from(`${line}${LINE_END}`, "latin1");
      }
      case "chunk_end": {
        const line = this.#line(0);
        if (line === null) return null;
        this.#state = { at: "chunk" };
        return Buffer.from(LINE_END);
      }
      case "trailer": {
        const line = this.#line(MAX_HEAD_BYTES);
        if (line === null) return null;
        if (line === "") this.#state = { at: "head" };
        return Buffer.from(`${line}${LINE_END}`, "latin1");
      }
    }
  }

  #head(): Buffer | null {
    // Servers ignore empty lines before a request: they are not forwarded.
    for (; this.#pending.startsWith(LINE_END); this.steps++) this.#pending.take(LINE_END.length);
    if (!this.#hasLine) this.#checkLine();
    const end = this.#hasLine ? this.#pending.find(HEAD_END) : -1;
    if (end > MAX_HEAD_BYTES || (end === -1 && this.#pending.byteLength > MAX_HEAD_BYTES)) {
      throw new BadRequest("its head is too long");
    }
    if (end === -1) return null;
    const text = this.#pending.bytes.subarray(0, end).toString("latin1");
    const { host, body, upgrade } = readHead(text);
    if (!this.#isAllowed(host)) throw new WrongHost(host);
    this.#hasLine = false;
    this.#requests++;
    const isFirst = this.#requests === 1;
    const isSocket = upgrade === WEBSOCKET;
    // Only the first request's response can be identified.
    if (isSocket && !isFirst) throw new BadRequest("a WebSocket must be its connection's first request");
    if (isSocket && body.kind === "chunked") throw new BadRequest("a WebSocket upgrade has a chunked body");
    this.#asked = isFirst ? upgrade : null;
    this.#state =
      body.kind === "chunked" ? { at: "chunk" } : { at: "body", left: body.bytes, next: isSocket ? "held" : "head" };
    const head = this.#pending.take(end + HEAD_END.length);
    return upgrade === null || isSocket ? head : Buffer.from(`${withoutUpgrade(text)}${HEAD_END}`, "latin1");
  }

  /** Refuses a first line of another protocol as soon as it ends, before the end of a head. */
  #checkLine(): void {
    const end = this.#pending.find(LF);
    if (end === -1 || end > MAX_HEAD_BYTES) return;
    requireRequestLine(this.#pending.bytes.subarray(0, end).toString("latin1").replace(/\r$/, ""));
    this.#hasLine = true;
  }

  /** The next line without its end; null if it is incomplete. */
  #line(most: number): string | null {
    const end = this.#pending.find(LINE_END);
    if (end > most || (end === -1 && this.#pending.byteLength > most + 1))
      throw new BadRequest("a line of its body is too long");
    if (end === -1) return null;
    const line = this.#pending
      .take(end + LINE_END.length)
      .subarray(0, end)
      .toString("latin1");
    if (/[\r\n]/.test(line)) throw new BadRequest("a line of its chunked body is not valid");
    return line;
  }
}

/** A request for another host. */
export class WrongHost extends Error {
  override name = "WrongHost";
  readonly host: string;
  constructor(host: string) {
    super(`a request is for ${host}`);
    this.host = host;
  }
}
