/** Header fields of HTTP/1 (RFC 9112, 5), and the framing of a body that they declare (6). */
import { BadMessage } from "./bad-message.ts";

/** Name in lower case, and value, in order of arrival. */
export type Header = [name: string, value: string];

export type Framing = { kind: "none" } | { kind: "length"; bytes: number } | { kind: "chunked" } | { kind: "to_end" };

/** Headers of one connection, never passed on. */
export const HOP_BY_HOP: readonly string[] = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const LENGTH = /^\d{1,15}$/;

/**
 * Throws BadMessage, also for a line that begins with a blank: it continues the previous one (obsolete folding), and implementations
 * disagree on its meaning.
 */
export function readHeader(line: string): Header {
  const colon = line.indexOf(":");
  const name = line.slice(0, Math.max(colon, 0));
  // By hand: a regular expression takes quadratic time for a value with many blanks inside.
  let [from, to] = [colon + 1, line.length];
  while (isBlank(line, from)) from++;
  while (to > from && isBlank(line, to - 1)) to--;
  const value = line.slice(from, to);
  if (!isHeader(name, value)) throw new BadMessage("an invalid header");
  return [name.toLowerCase(), value];
}

/** Whether they can be sent: any other character could become the end of the line. */
export const isHeader = (name: string, value: string): boolean => NAME.test(name) && VALUE.test(value);

export const valuesOf = (headers: readonly Header[], name: string): string[] =>
  headers.filter(([each]) => each === name).map(([, value]) => value);

/**
 * The framing that the fields of a message declare; null if they declare none. Throws BadMessage for any combination that two receivers
 * could read differently. `minor`: HTTP/1.0 has no chunks, and some receivers would parse them as messages.
 */
export function declaredFraming(headers: readonly Header[], minor: number, lengths: readonly string[]): Framing | null {
  const codings = valuesOf(headers, "transfer-encoding");
  if (codings.length > 0) {
    if (lengths.length > 0) throw new BadMessage("both a length and a transfer coding");
    if (codings.join().toLowerCase() !== "chunked") throw new BadMessage("an unknown transfer coding");
    if (minor === 0) throw new BadMessage("a chunked body in HTTP/1.0");
    return { kind: "chunked" };
  }
  const [length] = lengths;
  if (length === undefined) return null;
  if (lengths.length > 1 || !LENGTH.test(length)) throw new BadMessage("an invalid length");
  return { kind: "length", bytes: Number(length) };
}

function isBlank(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === 0x20 || code === 0x09;
}
