/**
 * Owns looking at what a sandbox says on a connection that it may make to one name only: TLS must ask for that name, every
 * HTTP/1 request must be for it, HTTP/2 without TLS is refused. What is neither goes through: its name and address were checked.
 * What is what is the table in first-line.ts.
 */
import { readServerName } from "./client-hello.ts";
import { BEGINS, FirstLine, isBlank, RawLine } from "./first-line.ts";
import { BadRequest } from "./http-head.ts";
import { HttpRequests, WrongHost } from "./http-requests.ts";
import { Pending } from "./pending.ts";

const OLD_HELLO_BYTES = 5;
const MOST_HELLO_BYTES = 80 * 1024;
const NOTHING = Buffer.alloc(0);

/** What was said that is not allowed. `presented` is the name that it was for, when there was one. */
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
  readonly #begin = new Pending();
  readonly #line = new FirstLine();
  /** Once it is decided what is spoken; null is what is not looked at any further. */
  #spoken: HttpRequests | RawLine | null | undefined;
  /** How many bytes there must be before it is worth another look. */
  #needed = 1;
  #hasBegun = false;
  #isBehindBlank = false;

  constructor(name: string) {
    this.#name = name;
  }

  /** How much was looked at so far: parts of requests, each some microseconds of work at most. */
  get steps(): number {
    return this.#spoken instanceof HttpRequests ? this.#spoken.steps : 0;
  }

  /** How many bytes come next that are not looked at. */
  get unseen(): number {
    if (this.#spoken === null) return Number.POSITIVE_INFINITY;
    return this.#spoken instanceof HttpRequests ? this.#spoken.unseen : 0;
  }

  /** What may go out now that these bytes came; what is not clear yet is kept. Throws NotThisName. */
  push(bytes: Buffer): Buffer {
    if (this.#spoken === null) return bytes;
    if (this.#spoken instanceof RawLine) return this.#raw(this.#spoken, bytes);
    if (this.#spoken) return this.#checked(this.#spoken, (http) => http.push(bytes));
    this.#begin.push(bytes);
    return this.#decide();
  }

  /** The server has said this: what may go out now that was kept until it has. Throws NotThisName. */
  answered(bytes: Buffer): Buffer {
    const spoken = this.#spoken;
    return spoken instanceof HttpRequests ? this.#checked(spoken, (http) => http.answered(bytes)) : NOTHING;
  }

  /** Only bytes decide, never time: who says half a line has the rest of it looked at too. */
  #decide(): Buffer {
    const blank = this.#hasBegun ? NOTHING : this.#takeBlank();
    const begin = this.#begin.bytes;
    if (begin.byteLength < this.#needed) return blank;
    this.#hasBegun = true;
    const [first = 0] = begin;
    if (first === 0 && this.#isBehindBlank) throw proxied();
    const is = BEGINS[first];
    if (is === "tls") return Buffer.concat([blank, this.#hello(begin)]);
    const spoken = is === "line" ? this.#firstLine(begin) : is === "ssl2" ? this.#oldHello(begin) : "raw";
    if (spoken === "maybe") return blank;
    this.#spoken = spoken === "raw" ? new RawLine() : new HttpRequests((host) => host === this.#name);
    return Buffer.concat([blank, this.push(this.#begin.take(begin.byteLength))]);
  }

  /** By itself it asks for nothing, so that it need not wait for what follows. */
  #takeBlank(): Buffer {
    const { bytes } = this.#begin;
    const end = bytes.findIndex((byte) => !isBlank(byte));
    const blank = this.#begin.take(end === -1 ? bytes.byteLength : end);
    if (blank.byteLength > 0) this.#isBehindBlank = true;
    return blank;
  }

  #hello(begin: Buffer): Buffer {
    const found = readServerName(begin);
    if (found.is === "more" && begin.byteLength <= MOST_HELLO_BYTES) {
      this.#needed = found.bytes;
      return NOTHING;
    }
    if (found.is === "absent") throw new NotThisName("sni_missing", "the TLS connection names no server");
    if (found.is !== "name") throw new NotThisName("bad_request", "its TLS handshake is not valid");
    // A server compares the bytes themselves: it knows nothing of how names are mapped, nor that a dot at the end means nothing.
    if (found.name.toLowerCase() !== this.#name) {
      throw new NotThisName("sni_mismatch", "the TLS connection is for another name", found.name);
    }
    this.#spoken = null;
    return this.#begin.take(begin.byteLength);
  }

  /** A hello as it was written for SSL 2 names no server, and some servers of TLS still take it. */
  #oldHello(begin: Buffer): "maybe" | "raw" {
    this.#needed = OLD_HELLO_BYTES;
    if (begin.byteLength < OLD_HELLO_BYTES) return "maybe";
    if (begin[2] !== 1 || begin[3] !== 3) return "raw";
    throw new NotThisName("sni_missing", "the TLS connection names no server");
  }

  #firstLine(begin: Buffer): "http" | "raw" | "maybe" {
    const is = this.#line.look(begin);
    if (is === "proxy") throw proxied();
    if (is === "endless") throw new NotThisName("bad_request", "its first line is too long");
    return is;
  }

  #raw(line: RawLine, bytes: Buffer): Buffer {
    const is = line.push(bytes);
    if (is === "http") throw new NotThisName("bad_request", "its first line is not HTTP/1");
    if (is === "ended") this.#spoken = null;
    return bytes;
  }

  #checked(http: HttpRequests, act: (http: HttpRequests) => Buffer): Buffer {
    try {
      return act(http);
    } catch (error) {
      if (error instanceof WrongHost) {
        throw new NotThisName("host_mismatch", "an HTTP request is for another host", error.host);
      }
      if (error instanceof BadRequest)
        throw new NotThisName("bad_request", `an HTTP request is refused: ${error.message}`);
      throw error;
    }
  }
}

/** Whoever takes it believes what it says of the connection. */
function proxied(): NotThisName {
  return new NotThisName("bad_request", "it begins with the PROXY protocol");
}
