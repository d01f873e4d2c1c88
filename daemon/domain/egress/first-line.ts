/**
 * Classification of a connection's first bytes. A server that is more lenient than this table could be made to serve a virtual
 * host that was never checked, so the table is as lenient as any known server.
 *
 *   first byte                              is      and then
 *   TAB LF VT FF CR SPACE                   blank   passed; the next byte decides. NUL after CR LF CR LF is refused: PROXY, version 2
 *   0x14 to 0x18                            record  of TLS: its hello must be for the name. Not of TLS (tls-record.ts): raw
 *   0x80 to 0xff                            ssl2    a hello of SSL 2 is refused, all else is raw
 *   of a token (RFC 9110), 0x1c to 0x1f     line    kept until the line has ended: HTTP is inspected, PROXY refused, all else raw.
 *                                                   A control character after the first separator ends the wait: an HTTP method
 *                                                   before it is refused, all else raw
 *   any other                               raw     passed, but the end of a first line that ends as HTTP's is refused
 */

export type Begin = "blank" | "record" | "ssl2" | "line" | "raw";

/** TLS content types (RFC 8446, B.1): change_cipher_spec, alert, handshake, application_data, heartbeat. */
const RECORDS = bytesOf("", "\x14\x18");
const BLANKS = bytesOf("\t\n\v\f\r ");
const TOKEN = bytesOf("!#$%&'*+-.^_`|~", "09", "AZ", "az");
/** Characters that at least one server accepts as the space after a method, or skips before it. */
const SEPARATORS = bytesOf("\t\v\f \x85\xa0", "\x1c\x1f");
const LINE_ENDS = bytesOf("\r\n");
/** Maximum length of a first line to wait for. */
const MAX_LINE_BYTES = 16 * 1024;
/** Methods that make a line HTTP even without a version. */
const METHOD = /^(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PRI)[^A-Z]/i;
const VERSION = /HTTP\/\d/i;
const PROXY = /^PROXY[^A-Z]/i;
/** End of an HTTP line, whatever precedes the version. */
const VERSION_AT_END = /HTTP\/\d+(\.\d+)?$/i;
/** The same for a server that uses C strings. */
const VERSION_BEFORE_NUL = /HTTP\/\d+(\.\d+)?[^\x21-\x7e]*\0/i;
const MAX_VERSION_CHARACTERS = 16;
const LF = 0x0a;

export const BEGINS: readonly Begin[] = Array.from({ length: 256 }, (_, byte): Begin => {
  if (BLANKS.has(byte)) return "blank";
  if (RECORDS.has(byte)) return "record";
  if (byte >= 0x80) return "ssl2";
  return TOKEN.has(byte) || SEPARATORS.has(byte) ? "line" : "raw";
});

export const isBlank = (byte: number): boolean => BLANKS.has(byte);

/** A line that may be HTTP, checked as it arrives. Servers skip lines without a visible character. */
export class FirstLine {
  #looked = 0;
  /** Position of the first visible byte. */
  #from: number | null = null;
  #hasMethod = false;

  /**
   * `begin` is all that has arrived so far. "garbled": an HTTP method, and then a control character. "binary": a token, a separator and a
   * control character. "endless": a method without a line end.
   */
  look(begin: Buffer): "http" | "proxy" | "raw" | "garbled" | "binary" | "maybe" | "endless" {
    for (; this.#looked < begin.byteLength; this.#looked++) {
      const byte = begin[this.#looked] ?? 0;
      if (this.#from !== null && LINE_ENDS.has(byte)) {
        return this.#ended(begin) ?? "raw";
      }
      if (isVisible(byte)) this.#from ??= this.#looked;
      if (SEPARATORS.has(byte)) this.#hasMethod = this.#from !== null;
      else if (!this.#hasMethod && !TOKEN.has(byte) && !LINE_ENDS.has(byte)) return "raw";
      else if (this.#hasMethod && isControl(byte)) {
        const is = this.#ended(begin);
        return is === "http" ? "garbled" : (is ?? "binary");
      }
    }
    if (begin.byteLength <= MAX_LINE_BYTES) return "maybe";
    return this.#hasMethod ? "endless" : "raw";
  }

  /** The verdict on a line that the client has left unfinished. */
  atEnd(begin: Buffer): "http" | "proxy" | null {
    this.#looked = begin.byteLength;
    return this.#ended(begin);
  }

  /** The verdict on a line that ends at the current position: null if nothing in it is HTTP. */
  #ended(begin: Buffer): "http" | "proxy" | null {
    const text = begin.toString("latin1", this.#from ?? 0, this.#looked + 1);
    if (PROXY.test(text)) return "proxy";
    return METHOD.test(text) || VERSION.test(text) ? "http" : null;
  }
}

/** A first line that is forwarded as it arrives. */
export class RawLine {
  readonly #refused: RegExp;
  /** Last visible characters of the line. */
  #end = "";

  /** `binary`: the line started as HTTP does, so that a version anywhere in it is refused. */
  constructor(binary = false) {
    this.#refused = binary ? VERSION : VERSION_BEFORE_NUL;
  }

  /** Whether the line ends in these bytes, and as an HTTP line: then they must not be forwarded. */
  push(bytes: Buffer): "goes_on" | "ended" | "http" {
    for (let from = 0; ; ) {
      const at = bytes.indexOf(LF, from);
      const text = this.#end + bytes.toString("latin1", from, at === -1 ? bytes.byteLength : at);
      if (this.#refused.test(text)) return "http";
      this.#end = keptOf(text);
      if (at === -1) return "goes_on";
      if (this.#end !== "") return VERSION_AT_END.test(this.#end) ? "http" : "ended";
      from = at + 1;
    }
  }
}

/** The part that can be the end of a version, without invisible characters after it. */
function keptOf(line: string): string {
  let end = line.length;
  while (end > 0 && !isVisible(line.charCodeAt(end - 1))) end--;
  return line.slice(Math.max(0, end - MAX_VERSION_CHARACTERS), end);
}

const isVisible = (byte: number) => byte > 0x20 && byte < 0x7f;

/** Neither a line end, nor a separator for any server. */
const isControl = (byte: number) => (byte < 0x20 && !SEPARATORS.has(byte) && !LINE_ENDS.has(byte)) || byte === 0x7f;

/** The characters of `each`, and of ranges given by their first and last character. */
function bytesOf(each: string, ...ranges: string[]): ReadonlySet<number> {
  const bytes = new Set([...each].map((character) => character.charCodeAt(0)));
  for (const range of ranges) {
    for (let byte = range.charCodeAt(0); byte <= range.charCodeAt(1); byte++) bytes.add(byte);
  }
  return bytes;
}
