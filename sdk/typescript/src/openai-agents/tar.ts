/** Writer of the archive format for transferring many files to a guest: POSIX tar, with GNU's extension for long names. */

export interface Member {
  /** Relative to the directory in which the archive is unpacked. */
  path: string;
  mode: number;
  /** By name in the guest; root if the guest does not have the name. */
  user?: string;
  group?: string;
  /** A directory if absent. */
  content?: Uint8Array;
}

const BLOCK_BYTES = 512;
const SHORT_NAME_BYTES = 100;
const LONG_NAME = "././@LongLink";
/** Offset of each header field. */
const AT = {
  mode: 100,
  uid: 108,
  gid: 116,
  size: 124,
  time: 136,
  sum: 148,
  type: 156,
  magic: 257,
  user: 265,
  group: 297,
};

export function* packed(member: Member): Generator<Uint8Array> {
  const isDirectory = member.content === undefined;
  const name = Buffer.from(`./${member.path}${isDirectory ? "/" : ""}`);
  if (name.byteLength > SHORT_NAME_BYTES) {
    yield header(Buffer.from(LONG_NAME), "L", name.byteLength + 1, { path: LONG_NAME, mode: 0o644 });
    yield* padded(Buffer.concat([name, Buffer.alloc(1)]));
  }
  yield header(name.subarray(0, SHORT_NAME_BYTES), isDirectory ? "5" : "0", member.content?.byteLength ?? 0, member);
  if (member.content) yield* padded(member.content);
}

/** The end of an archive. */
export function end(): Uint8Array {
  return Buffer.alloc(2 * BLOCK_BYTES);
}

function header(name: Buffer, type: string, size: number, { mode, user = "", group = "" }: Member): Uint8Array {
  const block = Buffer.alloc(BLOCK_BYTES);
  name.copy(block);
  const put = (at: number, text: string) => block.write(text, at, "latin1");
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  put(AT.mode, octal(mode, 7));
  put(AT.uid, octal(0, 7));
  put(AT.gid, octal(0, 7));
  put(AT.size, octal(size, 11));
  put(AT.time, octal(Math.floor(Date.now() / 1000), 11));
  put(AT.type, type);
  put(AT.magic, "ustar\0" + "00");
  put(AT.user, user.slice(0, 31));
  put(AT.group, group.slice(0, 31));
  // The checksum is computed with its own field as spaces.
  put(AT.sum, " ".repeat(8));
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(AT.sum, `${octal(sum, 6)}\0 `);
  return block;
}

function* padded(content: Uint8Array): Generator<Uint8Array> {
  yield content;
  const over = content.byteLength % BLOCK_BYTES;
  if (over > 0) yield Buffer.alloc(BLOCK_BYTES - over);
}
