/** ClientHello messages of TLS, built from their fields. */

const u16 = (number: number) => Buffer.from([number >> 8, number & 255]);
const vector8 = (bytes: Buffer) => Buffer.concat([Buffer.from([bytes.byteLength]), bytes]);
const vector16 = (bytes: Buffer) => Buffer.concat([u16(bytes.byteLength), bytes]);

export interface Hello {
  /** Null for no name; several names are possible. */
  names: string | string[] | null;
  /** Others, before and behind the names. */
  before?: { type: number; content: Buffer }[];
  behind?: { type: number; content: Buffer }[];
  nameType?: number;
}

export function serverNameExtension(names: string[], nameType = 0): Buffer {
  const list = names.map((name) => Buffer.concat([Buffer.from([nameType]), vector16(Buffer.from(name, "latin1"))]));
  return extension(0, vector16(Buffer.concat(list)));
}

export function extension(type: number, content: Buffer): Buffer {
  return Buffer.concat([u16(type), vector16(content)]);
}

/** The handshake message, without records around it. */
export function helloOf({ names, before = [], behind = [], nameType }: Hello): Buffer {
  const written = (each: typeof before) => each.map(({ type, content }) => extension(type, content));
  const own = names === null ? [] : [serverNameExtension([names].flat(), nameType)];
  return messageOf(Buffer.concat([...written(before), ...own, ...written(behind)]));
}

/** A hello with these bytes in the place of its extensions. */
export function messageOf(extensions: Buffer): Buffer {
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    vector8(Buffer.alloc(32, 1)),
    vector16(Buffer.from([0x13, 1, 0x13, 2])),
    vector8(Buffer.from([0])),
    vector16(extensions),
  ]);
  return Buffer.concat([Buffer.from([1, 0]), u16(body.byteLength), body]);
}

/** Splits a message into records of these sizes, repeated as needed. */
export function inRecords(message: Buffer, sizes: readonly number[] = [16_384], version = 1): Buffer {
  const records: Buffer[] = [];
  for (let offset = 0, turn = 0; offset < message.byteLength; turn++) {
    const part = message.subarray(offset, offset + (sizes[turn % sizes.length] ?? 1));
    records.push(Buffer.from([22, 3, version]), vector16(part));
    offset += part.byteLength;
  }
  return Buffer.concat(records);
}
