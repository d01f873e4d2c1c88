/**
 * Owns what a connection's first bytes make of it. A server that is more lenient than this table could be made to see a host
 * that nobody has looked at, so it is as lenient as any server is known to be.
 *
 *   first byte                              is      and then
 *   TAB LF VT FF CR SPACE                   blank   passed; the next byte decides. A NUL behind it is refused: PROXY, version 2
 *   0x16                                    tls     its hello must be for the name
 *   0x80 to 0xff                            ssl2    a hello of SSL 2 is refused, all else is raw
 *   of a token (RFC 9110), 0x1c to 0x1f     line    kept until the line has ended: HTTP is inspected, PROXY refused, all else raw
 *   any other                               raw     passed, but the end of a first line that ends as HTTP's is refused
 */

export type Begin = "blank" | "tls" | "ssl2" | "line" | "raw";

const HANDSHAKE = 0x16;
const BLANKS = bytesOf("\t\n\v\f\r ");
const TOKEN = bytesOf("!#$%&'*+-.^_`|~", "09", "AZ", "az");
/** What some server or other takes for the space after a method, or passes over before it. */
const SEPARATORS = bytesOf("\t\v\f \x85\xa0", "\x1c\x1f");
const LINE_ENDS = bytesOf("\r\n");
/** The longest first line that is waited for. */
const MOST_LINE_BYTES = 16 * 1024;
/** By these a line is HTTP although it names no version. */
const METHOD = /^(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PRI)[^A-Z]/i;
const VERSION = /HTTP\/\d/i;
const PROXY = /^PROXY[^A-Z]/i;
/** The end of a line of HTTP, whatever is before its version. */
const VERSION_AT_END = /HTTP\/\d+(\.\d+)?$/i;
const MOST_VERSION_CHARACTERS = 16;
const LF = 0x0a;

export const BEGINS: readonly Begin[] = Array.from({ length: 256 }, (_, byte): Begin => {
  if (BLANKS.has(byte)) return "blank";
  if (byte === HANDSHAKE) return "tls";
  if (byte >= 0x80) return "ssl2";
  return TOKEN.has(byte) || SEPARATORS.has(byte) ? "line" : "raw";
});

export const isBlank = (byte: number): boolean => BLANKS.has(byte);

/** A line that may be one of HTTP, looked at as it comes. Lines on which nothing shows are passed over by servers. */
export class FirstLine {
  #looked = 0;
  /** Where the first byte is that shows. */
  #from: number | null = null;
  #hasMethod = false;

  /** `begin` is all that has come so far. "endless": it has a method, and no end. */
  look(begin: Buffer): "http" | "proxy" | "raw" | "maybe" | "endless" {
    for (; this.#looked < begin.byteLength; this.#looked++) {
      const byte = begin[this.#looked] ?? 0;
      if (this.#from !== null && LINE_ENDS.has(byte)) {
        const text = begin.toString("latin1", this.#from, this.#looked + 1);
        if (PROXY.test(text)) return "proxy";
        return METHOD.test(text) || VERSION.test(text) ? "http" : "raw";
      }
      if (isVisible(byte)) this.#from ??= this.#looked;
      if (SEPARATORS.has(byte)) this.#hasMethod = this.#from !== null;
      else if (!this.#hasMethod && !TOKEN.has(byte) && !LINE_ENDS.has(byte)) return "raw";
    }
    if (begin.byteLength <= MOST_LINE_BYTES) return "maybe";
    return this.#hasMethod ? "endless" : "raw";
  }
}

/** A first line that is passed as it comes. */
export class RawLine {
  /** The last that showed of the line. */
  #end = "";

  /** Whether the line has ended with these bytes, and as one of HTTP: then they must not be passed. */
  push(bytes: Buffer): "goes_on" | "ended" | "http" {
    for (let from = 0; ; ) {
      const at = bytes.indexOf(LF, from);
      this.#end = keptOf(this.#end + bytes.toString("latin1", from, at === -1 ? bytes.byteLength : at));
      if (at === -1) return "goes_on";
      if (this.#end !== "") return VERSION_AT_END.test(this.#end) ? "http" : "ended";
      from = at + 1;
    }
  }
}

/** What can be the end of a version, without what does not show behind it. */
function keptOf(line: string): string {
  let end = line.length;
  while (end > 0 && !isVisible(line.charCodeAt(end - 1))) end--;
  return line.slice(Math.max(0, end - MOST_VERSION_CHARACTERS), end);
}

const isVisible = (byte: number) => byte > 0x20 && byte < 0x7f;

/** These, and ranges of them by their first and last. */
function bytesOf(each: string, ...ranges: string[]): ReadonlySet<number> {
  const bytes = new Set([...each].map((character) => character.charCodeAt(0)));
  for (const range of ranges) {
    for (let byte = range.charCodeAt(0); byte <= range.charCodeAt(1); byte++) bytes.add(byte);
  }
  return bytes;
}
