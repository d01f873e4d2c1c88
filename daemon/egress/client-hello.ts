/** Owns reading the server name out of the first message of a TLS client (RFC 8446, 4.1.2; RFC 6066, 3), from bytes as they come. */

const RECORD_HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const EXTENSION_SERVER_NAME = 0;
const NAME_TYPE_HOST = 0;
const RECORD_HEADER_BYTES = 5;
const MOST_RECORD_BYTES = 16_384 + 256;
/** A hello with the largest keys there are takes a few KiB. */
const MOST_HELLO_BYTES = 64 * 1024;

/** more: it is not whole yet. invalid: it is none that a server should be shown. */
export type ServerName = { is: "name"; name: string } | { is: "absent" | "more" | "invalid" };

/** Reads the bytes from a connection's first on. */
export function readServerName(bytes: Buffer): ServerName {
  const message = handshakeOf(bytes);
  if (message === null) return { is: "invalid" };
  if (message.byteLength < 4) return { is: "more" };
  const length = message.readUIntBE(1, 3);
  if (message[0] !== CLIENT_HELLO || length > MOST_HELLO_BYTES) return { is: "invalid" };
  if (message.byteLength < 4 + length) return { is: "more" };
  try {
    const name = serverNameOf(new Reader(message.subarray(4, 4 + length)));
    return name === null ? { is: "absent" } : { is: "name", name };
  } catch (error) {
    if (error instanceof RangeError) return { is: "invalid" };
    throw error;
  }
}

/** The handshake's bytes, which may lie in several records. Null when something else comes before it is whole. */
function handshakeOf(bytes: Buffer): Buffer | null {
  const parts: Buffer[] = [];
  let have = 0;
  for (let offset = 0; offset + RECORD_HEADER_BYTES <= bytes.byteLength; ) {
    const length = bytes.readUInt16BE(offset + 3);
    const needed = have >= 4 ? 4 + Buffer.concat(parts).readUIntBE(1, 3) : Number.POSITIVE_INFINITY;
    if (have >= needed) break;
    if (bytes[offset] !== RECORD_HANDSHAKE || bytes[offset + 1] !== 3) return null;
    if (length === 0 || length > MOST_RECORD_BYTES) return null;
    const part = bytes.subarray(offset + RECORD_HEADER_BYTES, offset + RECORD_HEADER_BYTES + length);
    parts.push(part);
    have += part.byteLength;
    offset += RECORD_HEADER_BYTES + length;
  }
  return Buffer.concat(parts);
}

/** Throws RangeError where lengths lie. */
function serverNameOf(hello: Reader): string | null {
  hello.take(2 + 32);
  hello.vector(1);
  hello.vector(2);
  hello.vector(1);
  if (hello.isEmpty) return null;
  const extensions = hello.vector(2);
  if (!hello.isEmpty) throw new RangeError("bytes after the extensions");
  let found: string | null = null;
  while (!extensions.isEmpty) {
    const type = extensions.number(2);
    const content = extensions.vector(2);
    if (type !== EXTENSION_SERVER_NAME) continue;
    if (found !== null) throw new RangeError("two server names");
    const names = content.vector(2);
    if (!content.isEmpty || names.number(1) !== NAME_TYPE_HOST) throw new RangeError("no host name");
    const name = names.vector(2).rest;
    if (!names.isEmpty || name.byteLength === 0) throw new RangeError("two server names");
    found = name.toString("latin1");
  }
  return found;
}

class Reader {
  #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isEmpty(): boolean {
    return this.#bytes.byteLength === 0;
  }

  get rest(): Buffer {
    return this.#bytes;
  }

  take(count: number): Buffer {
    if (count > this.#bytes.byteLength) throw new RangeError("shorter than it says");
    const taken = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return taken;
  }

  number(bytes: number): number {
    return this.take(bytes).readUIntBE(0, bytes);
  }

  vector(lengthBytes: number): Reader {
    return new Reader(this.take(this.number(lengthBytes)));
  }
}
