/** node:fs calls on descriptors as promises: they wait for the disk on other threads. */
import * as fs from "node:fs";
import { loopTime } from "../../core/loop/index.ts";

type Settle<T> = (error: Error | null, result: T) => void;

function promised<T>(start: (settle: Settle<T>) => void): Promise<T> {
  const go = loopTime.continuation("file");
  return new Promise((resolve, reject) =>
    start((error, result) => {
      go();
      if (error) reject(error);
      else resolve(result);
    }),
  );
}

/** Bytes read, 0 at the end of the file. */
export function readSome(file: number, into: Uint8Array, offset: number): Promise<number> {
  return promised((settle) => fs.read(file, into, 0, into.byteLength, offset, settle));
}

/** Bytes written at the descriptor's own position. */
export function writeSome(file: number, bytes: Uint8Array): Promise<number> {
  return promised((settle) => fs.write(file, bytes, 0, bytes.byteLength, null, settle));
}

export function sync(file: number): Promise<void> {
  return promised((settle) => fs.fsync(file, (error) => settle(error ?? null, undefined)));
}

/** The last close of a deleted file frees its blocks, which takes long for a large file. */
export function close(file: number): Promise<void> {
  return promised((settle) => fs.close(file, (error) => settle(error ?? null, undefined)));
}

/** Makes the names in a directory, and its own metadata, survive a crash of the host. */
export async function syncDirectory(directory: string): Promise<void> {
  const opened = await fs.promises.open(directory, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}
