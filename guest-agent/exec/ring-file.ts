/**
 * A file of fixed size used as a ring buffer. It is unlinked, so that nothing remains when the agent exits. Writes go to the page cache
 * synchronously; reads, which may wait for the disk, run on threads.
 */
import { mkdirSync, read, writeSync } from "node:fs";
import { promisify } from "node:util";
import * as libc from "../libc.ts";

const DIRECTORY = "/var/lib/roomd";

const readAt = promisify(read);

export class RingFile {
  readonly #fd: number;
  readonly #capacity: number;
  #readers = 0;
  #closed = false;

  /** Throws if the disk has no space for the file. */
  constructor(capacity: number, directory = DIRECTORY) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    this.#fd = libc.openUnnamed(directory);
    this.#capacity = capacity;
  }

  /** Writes all of `bytes` at `offset` of a conceptually endless file. */
  write(bytes: Uint8Array, offset: number): void {
    for (let done = 0; done < bytes.byteLength; ) {
      const at = (offset + done) % this.#capacity;
      done += writeSync(this.#fd, bytes, done, Math.min(bytes.byteLength - done, this.#capacity - at), at);
    }
  }

  /** Fills `bytes`. */
  async read(offset: number, bytes: Uint8Array): Promise<void> {
    const length = bytes.byteLength;
    if (this.#closed) throw new Error("the file is closed");
    this.#readers++;
    try {
      for (let done = 0; done < length; ) {
        const at = (offset + done) % this.#capacity;
        const part = Math.min(length - done, this.#capacity - at);
        const { bytesRead } = await readAt(this.#fd, bytes, done, part, at);
        if (bytesRead === 0) throw new Error("the file is shorter than was written");
        done += bytesRead;
      }
    } finally {
      this.#readers--;
      this.#closeUnused();
    }
  }

  /** Takes effect when no read is in progress. */
  close(): void {
    this.#closed = true;
    this.#closeUnused();
  }

  #closeUnused(): void {
    if (this.#closed && this.#readers === 0) libc.close(this.#fd);
  }
}
