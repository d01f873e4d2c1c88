/** Parser of the server name in the first message of a TLS client (RFC 8446, 4.1.2; RFC 6066, 3), from bytes as they arrive. */

const RECORD_HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const EXTENSION_SERVER_NAME = 0;
const NAME_TYPE_HOST = 0;
const RECORD_HEADER_BYTES = 5;
const HANDSHAKE_HEADER_BYTES = 4;
const MAX_RECORD_BYTES = 16_384 + 256;
/** Clients use one, or two for a large hello; each record is parsed again when the next has arrived. */
const MAX_RECORDS = 16;
/** A hello with the largest known keys takes a few KiB. */
const MAX_HELLO_BYTES = 64 * 1024;

/** more: incomplete, and at least `bytes` bytes are needed. invalid: no ClientHello that a server should receive. */
export type ServerName = { is: "name"; name: string } | { is: "more"; bytes: number } | { is: "absent" | "invalid" };

/** Reads the server name from the first bytes of a connection. */
export function readServerName(bytes: Buffer): ServerName {
  const message = handshakeOf(bytes);
  if (!Buffer.isBuffer(message)) return message;
  try {
    const name = serverNameOf(new Reader(message.subarray(HANDSHAKE_HEADER_BYTES)));
    return name === null ? { is: "absent" } : { is: "name", name };
  } catch (error) {
    if (error instanceof RangeError) return { is: "invalid" };
    throw error;
  }
}

/** The hello itself, which may span several records. */
function handshakeOf(bytes: Buffer): Buffer | Exclude<ServerName, { is: "name" }> {
  let message: Buffer = Buffer.alloc(0);
  for (let offset = 0, records = 0; records < MAX_RECORDS; records++) {
    const begin = offset + RECORD_HEADER_BYTES;
    if (bytes.byteLength < begin) return { is: "more", bytes: begin };
    const end = begin + bytes.readUInt16BE(offset + 3);
    if (bytes[offset] !== RECORD_HANDSHAKE || bytes[offset + 1] !== 3) return { is: "invalid" };
    if (end === begin || end - begin > MAX_RECORD_BYTES) return { is: "invalid" };
    if (bytes.byteLength < end) return { is: "more", bytes: end };
    message = Buffer.concat([message, bytes.subarray(begin, end)]);
    offset = end;
    if (message[0] !== CLIENT_HELLO) return { is: "invalid" };
    if (message.byteLength < HANDSHAKE_HEADER_BYTES) continue;
    const whole = HANDSHAKE_HEADER_BYTES + message.readUIntBE(1, 3);
    if (whole > MAX_HELLO_BYTES) return { is: "invalid" };
    if (message.byteLength >= whole) return message.subarray(0, whole);
  }
  return { is: "invalid" };
}

/** Throws RangeError if a length field is wrong. */
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
    if (count > this.#bytes.byteLength) throw new RangeError("shorter than its declared length");
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
