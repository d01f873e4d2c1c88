/**
 * Owns looking at what a sandbox says on a connection that it may make to one name only: TLS must ask for that name, every
 * HTTP/1 request must be for it, HTTP/2 without TLS is refused. What is neither goes through: its name and address were checked.
 */
import { readServerName } from "./client-hello.ts";
import { BadRequest } from "./http-head.ts";
import { HttpRequests, WrongHost } from "./http-requests.ts";
import { canonicalName } from "./names.ts";

const HANDSHAKE = 0x16;
/** The longest first line by which HTTP is known. */
const MOST_LINE_BYTES = 16 * 1024;
const MOST_HELLO_BYTES = 80 * 1024;

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
  #begin: Buffer | null = Buffer.alloc(0);
  #http: HttpRequests | null = null;

  constructor(name: string) {
    this.#name = name;
  }

  /** What may go out now that these bytes came; what is not clear yet is kept. Throws NotThisName. */
  push(bytes: Buffer): Buffer {
    if (this.#http) return this.#checked(this.#http, (http) => http.push(bytes));
    if (this.#begin === null) return bytes;
    this.#begin = Buffer.concat([this.#begin, bytes]);
    return this.#classify(this.#begin);
  }

  /** The server has answered: what may go out now that was kept until it has. Throws NotThisName. */
  answered(bytes: Buffer): Buffer {
    return this.#http ? this.#checked(this.#http, (http) => http.answered(bytes)) : Buffer.alloc(0);
  }

  #classify(begin: Buffer): Buffer {
    if (begin.byteLength === 0) return begin;
    if (begin[0] === HANDSHAKE) return this.#hello(begin);
    const http = looksLikeHttp(begin);
    if (http === "maybe") return Buffer.alloc(0);
    this.#begin = null;
    if (http === "no") return begin;
    this.#http = new HttpRequests((host) => host === this.#name);
    return this.push(begin);
  }

  #hello(begin: Buffer): Buffer {
    const found = readServerName(begin);
    if (found.is === "more" && begin.byteLength <= MOST_HELLO_BYTES) return Buffer.alloc(0);
    if (found.is === "absent") throw new NotThisName("sni_missing", "the TLS connection names no server");
    if (found.is !== "name") throw new NotThisName("bad_request", "its TLS begin is not valid");
    if (canonicalName(found.name) !== this.#name) {
      throw new NotThisName("sni_mismatch", "the TLS connection is for another name", found.name);
    }
    this.#begin = null;
    return begin;
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

/**
 * Whether a connection begins as HTTP does, as lenient as servers are: empty lines may come first. Only bytes decide, never time:
 * who says half a line has the rest of it looked at too.
 */
function looksLikeHttp(begin: Buffer): "yes" | "no" | "maybe" {
  const text = begin.toString("latin1").replace(/^[\r\n\t ]+/, "");
  if (text === "") return begin.byteLength > MOST_LINE_BYTES ? "no" : "maybe";
  const [, line = text, end] = /^([^\r\n]*)(\r?\n)?/.exec(text) ?? [];
  if (/^[\x21-\x7e]+[ \t]+\S.*HTTP\/\d/i.test(line)) return "yes";
  if (/^(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PRI)[ \t]/i.test(line)) return "yes";
  // A whole line that is none of HTTP, or what is in no line of HTTP.
  if (end !== undefined || !/^[\x20-\x7e\t]*$/.test(line)) return "no";
  return line.length > MOST_LINE_BYTES ? "no" : "maybe";
}
