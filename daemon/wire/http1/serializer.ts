/** Serializer of heads and chunks of HTTP/1. */
import { isHeader } from "./headers.ts";

const CRLF = "\r\n";
const START = /^[\x20-\x7e\x80-\xff]+$/;

export const LAST_CHUNK: Uint8Array = Buffer.from(`0${CRLF}${CRLF}`);

/** `start` is a request line or a status line. Throws an Error for text that could end its line. */
export function serializeHead(start: string, headers: Iterable<readonly [string, string]>): Buffer {
  if (!START.test(start)) throw new Error("the first line is invalid");
  let text = start + CRLF;
  for (const [name, value] of headers) {
    if (!isHeader(name, value)) throw new Error(`the header ${JSON.stringify(name)} is invalid`);
    text += `${name}: ${value}${CRLF}`;
  }
  return Buffer.from(text + CRLF, "latin1");
}

/** In one buffer: each part alone would be a frame of the guest link. */
export function serializeChunk(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(bytes.byteLength.toString(16) + CRLF), bytes, Buffer.from(CRLF)]);
}
