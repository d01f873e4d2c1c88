/**
 * Owns looking at what a sandbox says on a connection that it may make to one name only: TLS must ask for that name, every
 * HTTP/1 request must be for it, HTTP/2 without TLS is refused. What is neither goes through: its name and address were checked.
 */
import { readServerName } from "./client-hello.ts";
import { BadRequest } from "./http-head.ts";
import { HttpRequests, WrongHost } from "./http-requests.ts";
import { canonicalName } from "./names.ts";
import { Pending } from "./pending.ts";

const HANDSHAKE = 0x16;
const OLD_HELLO_BYTES = 5;
const MOST_HELLO_BYTES = 80 * 1024;
/** The longest first line that may be one of HTTP. */
const MOST_LINE_BYTES = 16 * 1024;
const NOTHING = Buffer.alloc(0);
const METHOD_BYTES = bytesOf("!#$%&'*+-.^_`|~", "09", "AZ", "az");
/** What some server or other takes for the space after a method, or passes over before it. */
const SEPARATORS = bytesOf("\t\v\f \x85\xa0", "\x1c\x1f");
const BLANKS = bytesOf("\t\n\v\f\r ");
const LINE_ENDS = bytesOf("\r\n");
/** By these a line is HTTP although it names no version. */
const METHOD = /^(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PRI)[^A-Z]/i;

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
  /** Once it is decided what is spoken; null is what is not looked at any further. */
  #spoken: HttpRequests | null | undefined;
  /** How many bytes there must be before it is worth another look. */
  #needed = 1;
  /** How much of the first line was looked at, and whether the method in it has ended. */
  #line = { looked: 0, hasMethod: false };

  constructor(name: string) {
    this.#name = name;
  }

  /** What may go out now that these bytes came; what is not clear yet is kept. Throws NotThisName. */
  push(bytes: Buffer): Buffer {
    if (this.#spoken === null) return bytes;
    if (this.#spoken) return this.#checked(this.#spoken, (http) => http.push(bytes));
    this.#begin.push(bytes);
    return this.#decide();
  }

  /** The server has said this: what may go out now that was kept until it has. Throws NotThisName. */
  answered(bytes: Buffer): Buffer {
    return this.#spoken ? this.#checked(this.#spoken, (http) => http.answered(bytes)) : NOTHING;
  }

  /** Only bytes decide, never time: who says half a line has the rest of it looked at too. */
  #decide(): Buffer {
    const blank = this.#line.looked === 0 ? this.#takeBlank() : NOTHING;
    const begin = this.#begin.bytes;
    if (begin.byteLength < this.#needed) return blank;
    const [first = 0] = begin;
    if (first === HANDSHAKE) return Buffer.concat([blank, this.#hello(begin)]);
    const spoken = first >= 0x80 ? this.#oldHello(begin) : this.#firstLine(begin);
    if (spoken === "maybe") return blank;
    this.#spoken = spoken === "other" ? null : new HttpRequests((host) => host === this.#name);
    return Buffer.concat([blank, this.push(this.#begin.take(begin.byteLength))]);
  }

  /** By itself it asks for nothing, so that it need not wait for what follows. */
  #takeBlank(): Buffer {
    const { bytes } = this.#begin;
    const end = bytes.findIndex((byte) => !BLANKS.has(byte));
    return this.#begin.take(end === -1 ? bytes.byteLength : end);
  }

  #hello(begin: Buffer): Buffer {
    const found = readServerName(begin);
    if (found.is === "more" && begin.byteLength <= MOST_HELLO_BYTES) {
      this.#needed = found.bytes;
      return NOTHING;
    }
    if (found.is === "absent") throw new NotThisName("sni_missing", "the TLS connection names no server");
    if (found.is !== "name") throw new NotThisName("bad_request", "its TLS handshake is not valid");
    if (canonicalName(found.name) !== this.#name) {
      throw new NotThisName("sni_mismatch", "the TLS connection is for another name", found.name);
    }
    this.#spoken = null;
    return this.#begin.take(begin.byteLength);
  }

  /** A hello as it was written for SSL 2 names no server, and some servers of TLS still take it. */
  #oldHello(begin: Buffer): "maybe" | "other" {
    this.#needed = OLD_HELLO_BYTES;
    if (begin.byteLength < OLD_HELLO_BYTES) return "maybe";
    if (begin[2] !== 1 || begin[3] !== 3) return "other";
    throw new NotThisName("sni_missing", "the TLS connection names no server");
  }

  /** Whether a connection begins as HTTP does, as lenient as servers are. */
  #firstLine(begin: Buffer): "http" | "other" | "maybe" {
    const line = this.#line;
    for (; line.looked < begin.byteLength; line.looked++) {
      const byte = begin[line.looked] ?? 0;
      if (LINE_ENDS.has(byte)) {
        const text = begin.toString("latin1", 0, line.looked + 1);
        return METHOD.test(text) || /HTTP\/\d/i.test(text) ? "http" : "other";
      }
      if (SEPARATORS.has(byte)) line.hasMethod = true;
      else if (!line.hasMethod && !METHOD_BYTES.has(byte)) return "other";
    }
    if (begin.byteLength <= MOST_LINE_BYTES) return "maybe";
    if (!line.hasMethod) return "other";
    throw new NotThisName("bad_request", "its first line is too long");
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

/** These, and ranges of them by their first and last. */
function bytesOf(each: string, ...ranges: string[]): ReadonlySet<number> {
  const bytes = new Set([...each].map((character) => character.charCodeAt(0)));
  for (const range of ranges) {
    for (let byte = range.charCodeAt(0); byte <= range.charCodeAt(1); byte++) bytes.add(byte);
  }
  return bytes;
}
