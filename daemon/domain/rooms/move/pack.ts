/** Writes a room's file: a stream of the packed room, with backpressure from its reader. */
import { type FileHandle, open, readdir } from "node:fs/promises";
import { findData, findHole } from "../../../host/files/holes.ts";
import { entriesIn, shardsIn } from "../../../host/files/store-places.ts";
import type { Artifact } from "./artifacts.ts";
import { type FileName, PIECE_BYTES } from "./format.ts";

export interface Packed {
  /** Directory of the drive's store: the list of its entries, and the contents of its files. */
  store: string;
  /** Path of the file with the database state. */
  state: string;
}

/** `first` describes the room, `belongings` are its other files. Throws read errors. */
export async function* packed(
  { store, state }: Packed,
  first: object,
  belongings: AsyncIterable<Artifact>,
): AsyncGenerator<Uint8Array> {
  const writing = new Writing();
  yield writing.line(first);
  yield* writing.file("state", state);
  yield* writing.file("entries", entriesIn(store));
  for (const shard of shardsIn(store)) {
    for (const name of await readdir(shard)) yield* writing.file(Number(name), `${shard}/${name}`);
  }
  for await (const { place, path, to, digest } of belongings) {
    if (to !== null) yield writing.line({ link: place, to });
    else if (digest !== null) yield writing.line({ same: place, digest });
    else yield* writing.file(place, path);
  }
  yield writing.end();
}

class Writing {
  readonly #digest = new Bun.CryptoHasher("sha256");
  #files = 0;

  line(value: object): Uint8Array {
    const bytes = Buffer.from(`${JSON.stringify(value)}\n`);
    this.#digest.update(bytes);
    return bytes;
  }

  async *file(name: FileName, path: string): AsyncGenerator<Uint8Array> {
    const opened = await open(path, "r");
    try {
      const { size } = await opened.stat();
      this.#files++;
      yield this.line({ file: name, size });
      yield* this.#pieces(opened, size);
    } finally {
      await opened.close();
    }
  }

  end(): Uint8Array {
    const files = this.#files;
    return Buffer.from(`${JSON.stringify({ end: { files, sha256: this.#digest.digest("hex") } })}\n`);
  }

  async *#pieces(opened: FileHandle, size: number): AsyncGenerator<Uint8Array> {
    let end = 0;
    for (let at = 0; at < size; ) {
      if (at >= end) {
        at = await findData(opened.fd, at);
        if (at >= size) return;
        end = Math.min(size, Math.max(at + 1, await findHole(opened.fd, at)));
      }
      const buffer = Buffer.allocUnsafeSlow(Math.min(PIECE_BYTES, end - at));
      const { bytesRead } = await opened.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) throw new Error(`a packed file became shorter than ${size} bytes`);
      const bytes = buffer.subarray(0, bytesRead);
      yield this.line({ at, bytes: bytesRead });
      this.#digest.update(bytes);
      yield bytes;
      at += bytesRead;
    }
  }
}
