/** Yardstick of the drive: the same file operations with plain system calls, without a daemon. */
import {
  closeSync,
  fsyncSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

const PIECE_BYTES = 1024 ** 2;

export class PlainFiles {
  readonly #directory: string;

  /** Works in a separate directory below `parent`, which the caller removes. */
  constructor(parent: string) {
    this.#directory = mkdtempSync(join(parent, "plain-"));
  }

  /** Whole or not at all, and on disk: write, fsync, rename, fsync of the directory. */
  write(name: string, bytes: Uint8Array): void {
    const path = join(this.#directory, name);
    withFile(`${path}.new`, "wx", (fd) => {
      writeSync(fd, bytes);
      fsyncSync(fd);
    });
    renameSync(`${path}.new`, path);
    withFile(this.#directory, "r", fsyncSync);
  }

  read(name: string): void {
    readFileSync(join(this.#directory, name));
  }

  /** As `dd bs=1M conv=fsync` writes. */
  writeStream(name: string, bytes: Uint8Array): void {
    withFile(join(this.#directory, name), "w", (fd) => {
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) writeSync(fd, bytes.subarray(at, at + PIECE_BYTES));
      fsyncSync(fd);
    });
  }

  /** As `dd bs=1M` reads. */
  readStream(name: string): void {
    const piece = new Uint8Array(PIECE_BYTES);
    withFile(join(this.#directory, name), "r", (fd) => {
      while (readSync(fd, piece) > 0);
    });
  }

  /** Every entry with its facts. */
  list(): number {
    return readdirSync(this.#directory).map((name) => lstatSync(join(this.#directory, name))).length;
  }
}

function withFile(path: string, flags: string, use: (fd: number) => void): void {
  const fd = openSync(path, flags);
  try {
    use(fd);
  } finally {
    closeSync(fd);
  }
}
