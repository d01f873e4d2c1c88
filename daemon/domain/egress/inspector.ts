/**
 * Inspection of the bytes that a sandbox sends on a connection that is allowed by name: TLS must request that name, every HTTP/1 request
 * must be for it, HTTP/2 without TLS is refused. All other protocols pass. The table in first-line.ts distinguishes them.
 *
 * Why the others may pass: the connection leads to an address of the allowed name, resolved and checked by the host. A second host at that
 * address can be reached only if the server picks it by a name that the client sends. TLS and HTTP do, so their names are compared. Bytes
 * are passed as raw only if no known server of TLS or HTTP would take them for its protocol, nor for a prefix of it that it skips (blanks,
 * an alert, the PROXY protocol). Names inside other protocols are not compared: see docs/egress.md.
 */
import { ByteQueue } from "../../wire/byte-queue.ts";
import { BadMessage } from "../../wire/http1/bad-message.ts";
import { readServerName } from "./client-hello.ts";
import { BEGINS, FirstLine, isBlank, RawLine } from "./first-line.ts";
import { HttpRequests } from "./http-requests.ts";
import { beginsTls } from "./tls-record.ts";

const OLD_HELLO_BYTES = 5;
const MAX_HELLO_BYTES = 80 * 1024;
const NOTHING = Buffer.alloc(0);
/** Start of the signature of the PROXY protocol, version 2: NUL follows. */
const PROXY_BLANKS = "\r\n\r\n";

/** Data from the sandbox that is not allowed. `presented` is the name that it was for, if any. */
export class NotThisName extends Error {
  override name = "NotThisName";
  readonly reason: "sni_mismatch" | "sni_missing" | "host_mismatch" | "bad_request";
  readonly presented: string | null;
  constructor(reason: NotThisName["reason"], message: string, presented: string | null = null) {
    super(message);
    this.reason = reason;
    this.presented = presented?.slice(0, 253) ?? null;
  }
}

export class Inspector {
  readonly #name: string;
  readonly #begin = new ByteQueue();
  readonly #line = new FirstLine();
  /** Parser of the detected protocol; null: the rest is not inspected; undefined: not yet detected. */
  #spoken: HttpRequests | RawLine | null | undefined;
  /** Number of bytes required before the next attempt to detect the protocol. */
  #needed = 1;
  #hasBegun = false;
  /** The last blanks before the first other byte. */
  #blanks = "";

  constructor(name: string) {
    this.#name = name;
  }

  /** Whether bytes are held back until their protocol is detected. */
  get isUndecided(): boolean {
    return this.#spoken === undefined && this.#begin.byteLength > 0;
  }

  /** Number of inspection steps so far: parts of requests, each some microseconds of work at most. */
  get steps(): number {
    return this.#spoken instanceof HttpRequests ? this.#spoken.steps : 0;
  }

  /** Number of following bytes that are not inspected. */
  get unseen(): number {
    if (this.#spoken === null) return Number.POSITIVE_INFINITY;
    return this.#spoken instanceof HttpRequests ? this.#spoken.unseen : 0;
  }

  /** Adds bytes from the client, and returns the bytes that may be sent now; undecided bytes are held back. Throws NotThisName. */
  push(bytes: Buffer): Buffer {
    if (this.#spoken === null) return bytes;
    if (this.#spoken instanceof RawLine) return this.#raw(this.#spoken, bytes);
    if (this.#spoken) return this.#checked(this.#spoken, (http) => http.push(bytes));
    this.#begin.push(bytes);
    return this.#decide();
  }

  /** Adds bytes from the server, and returns the client's bytes that were held back until then. Throws NotThisName. */
  answered(bytes: Buffer): Buffer {
    const spoken = this.#spoken;
    return spoken instanceof HttpRequests ? this.#checked(spoken, (http) => http.answered(bytes)) : NOTHING;
  }

  /**
   * The client has ended its side: returns the held-back bytes if they belong to no protocol that names a host. No more can follow. Throws
   * NotThisName.
   */
  ended(): Buffer {
    if (!this.isUndecided) return NOTHING;
    const begin = this.#begin.bytes;
    const is = BEGINS[begin[0] ?? 0];
    if (is === "record" && beginsTls(begin) !== "raw") throw incomplete();
    if (is === "line" && this.#line.atEnd(begin) !== null) throw incomplete();
    this.#spoken = null;
    return this.#begin.take(begin.byteLength);
  }

  /** Only bytes decide, never time: if a client sends half a line, the rest of it is inspected too. */
  #decide(): Buffer {
    const blank = this.#hasBegun ? NOTHING : this.#takeBlank();
    const begin = this.#begin.bytes;
    if (begin.byteLength < this.#needed) return blank;
    this.#hasBegun = true;
    const [first = 0] = begin;
    if (first === 0 && this.#blanks === PROXY_BLANKS) throw proxied();
    const is = BEGINS[first];
    if (is === "record") {
      const tls = beginsTls(begin);
      if (tls === "refused") throw new NotThisName("bad_request", "its TLS does not begin with a handshake");
      if (typeof tls === "number") this.#needed = tls;
      if (tls === "hello") return Buffer.concat([blank, this.#hello(begin)]);
      return tls === "raw" ? this.#begun(new RawLine(), blank) : blank;
    }
    const spoken = is === "line" ? this.#firstLine(begin) : is === "ssl2" ? this.#oldHello(begin) : "raw";
    if (spoken === "maybe") return blank;
    return this.#begun(
      spoken === "http" ? new HttpRequests(this.#requireHost) : new RawLine(spoken === "binary"),
      blank,
    );
  }

  #begun(spoken: HttpRequests | RawLine, blank: Buffer): Buffer {
    this.#spoken = spoken;
    return Buffer.concat([blank, this.push(this.#begin.take(this.#begin.byteLength))]);
  }

  /** Blanks alone are no request, so they are sent without waiting for the bytes after them. */
  #takeBlank(): Buffer {
    const { bytes } = this.#begin;
    const end = bytes.findIndex((byte) => !isBlank(byte));
    const blank = this.#begin.take(end === -1 ? bytes.byteLength : end);
    this.#blanks = (this.#blanks + blank.toString("latin1", Math.max(0, blank.byteLength - PROXY_BLANKS.length))).slice(
      -PROXY_BLANKS.length,
    );
    return blank;
  }

  #hello(begin: Buffer): Buffer {
    const found = readServerName(begin);
    if (found.is === "more" && begin.byteLength <= MAX_HELLO_BYTES) {
      this.#needed = found.bytes;
      return NOTHING;
    }
    if (found.is === "absent") throw new NotThisName("sni_missing", "the TLS connection names no server");
    if (found.is !== "name") throw new NotThisName("bad_request", "its TLS handshake is not valid");
    // A server compares the bytes themselves: it does not map names (IDNA), nor ignore a dot at the end.
    if (found.name.toLowerCase() !== this.#name) {
      throw new NotThisName("sni_mismatch", "the TLS connection is for another name", found.name);
    }
    this.#spoken = null;
    return this.#begin.take(begin.byteLength);
  }

  /** An SSL 2 hello names no server, and some TLS servers still accept it. */
  #oldHello(begin: Buffer): "maybe" | "raw" {
    if ((begin[2] ?? 1) !== 1 || (begin[3] ?? 3) !== 3) return "raw";
    if (begin.byteLength < OLD_HELLO_BYTES) return "maybe";
    throw new NotThisName("sni_missing", "the TLS connection names no server");
  }

  #firstLine(begin: Buffer): "http" | "raw" | "binary" | "maybe" {
    const is = this.#line.look(begin);
    if (is === "proxy") throw proxied();
    if (is === "garbled") throw new NotThisName("bad_request", NOT_HTTP);
    if (is === "endless") throw new NotThisName("bad_request", "its first line is too long");
    return is;
  }

  #raw(line: RawLine, bytes: Buffer): Buffer {
    const is = line.push(bytes);
    if (is === "http") throw new NotThisName("bad_request", NOT_HTTP);
    if (is === "ended") this.#spoken = null;
    return bytes;
  }

  readonly #requireHost = (host: string): void => {
    if (host === this.#name) return;
    throw new NotThisName("host_mismatch", "an HTTP request is for another host", host);
  };

  #checked(http: HttpRequests, act: (http: HttpRequests) => Buffer): Buffer {
    try {
      return act(http);
    } catch (error) {
      if (!(error instanceof BadMessage)) throw error;
      throw new NotThisName("bad_request", `an HTTP request is refused: ${error.message}`);
    }
  }
}

const NOT_HTTP = "its first line has a method or version of HTTP, but is not a request of HTTP/1";

function incomplete(): NotThisName {
  return new NotThisName("bad_request", "it ended within its first message");
}

/** A server that accepts the PROXY protocol trusts the addresses in it. */
function proxied(): NotThisName {
  return new NotThisName("bad_request", "it begins with the PROXY protocol");
}
