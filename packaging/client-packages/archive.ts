/** Archives with the same bytes for the same files: the tarball of an npm package and the zip of a Python wheel. */
import { crc32, deflateRawSync, gzipSync } from "node:zlib";

/** Content of files by path. */
export type Files = Record<string, string | Uint8Array>;

const BLOCK = 512;
/** 1985-10-26, as npm dates every file of a package. */
const TAR_SECONDS = 499_162_500;
/** 1980-01-01, the earliest date of the format. */
const ZIP_DATE = (1 << 5) | 1;
const PROGRAM_MODE = 0o755;
const FILE_MODE = 0o644;

/** The files beneath `package/`, as npm expects them. `programs` are executable. */
export function npmTarball(files: Files, programs: readonly string[] = []): Uint8Array {
  const blocks = Object.keys(files)
    .sort()
    .flatMap((path) => {
      const bytes = Buffer.from(files[path] as string);
      const mode = programs.includes(path) ? PROGRAM_MODE : FILE_MODE;
      const padding = Buffer.alloc((BLOCK - (bytes.byteLength % BLOCK)) % BLOCK);
      return [tarHeader(`package/${path}`, bytes.byteLength, mode), bytes, padding];
    });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]), { level: 9 });
}

/** A header of POSIX ustar. */
function tarHeader(path: string, size: number, mode: number): Buffer {
  if (Buffer.byteLength(path) > 100) throw new Error(`${path} is too long for a tar header`);
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, digits: number) =>
    header.write(`${value.toString(8).padStart(digits, "0")}\0`, at, "latin1");
  header.write(path, 0, "utf8");
  octal(mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(TAR_SECONDS, 136, 11);
  header.write("        0", 148, "latin1");
  header.write("ustar\x0000", 257, "latin1");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}

/** The files in the order of the record, as PKWARE's APPNOTE 6.3.3 lays them out. */
export function zip(files: Files): Uint8Array {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const [path, content] of Object.entries(files)) {
    const name = Buffer.from(path);
    const bytes = Buffer.from(content as string);
    const packed = deflateRawSync(bytes, { level: 9 });
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x800, 2);
    common.writeUInt16LE(8, 4);
    common.writeUInt16LE(ZIP_DATE, 8);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(packed.byteLength, 14);
    common.writeUInt32LE(bytes.byteLength, 18);
    common.writeUInt16LE(name.byteLength, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), common, name, packed]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(((0o100000 | FILE_MODE) << 16) >>> 0, 6);
    tail.writeUInt32LE(offset, 10);
    // Made by version 2.0 on Unix, so that the mode is applied.
    central.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x03", "latin1"), common, tail, name]));
    locals.push(local);
    offset += local.byteLength;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(central.length, 8);
  end.writeUInt16LE(central.length, 10);
  end.writeUInt32LE(directory.byteLength, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}
