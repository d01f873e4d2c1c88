/** Pipes between this process and programs that it starts, which read and write files, with backpressure in both directions. */
import { dlopen, ptr } from "bun:ffi";
import { closeSync, read, write } from "node:fs";
import { promisify } from "node:util";

const O_CLOEXEC = 0o2000000;
const CHUNK_BYTES = 256 * 1024;

const { symbols: libc } = dlopen("libc.so.6", { pipe2: { args: ["ptr", "i32"], returns: "i32" } });
const readSome = promisify(read);
const writeSome = promisify(write);

function openPipe(): { from: number; to: number } {
  const ends = new Int32Array(2);
  if (libc.pipe2(ptr(ends), O_CLOEXEC) !== 0) throw new Error("no pipe could be opened");
  return { from: Number(ends[0]), to: Number(ends[1]) };
}

/**
 * Yields the bytes that `work` writes into a file; in the end throws its error. A reader that stops aborts the writing, and waits for its
 * end.
 */
export async function* readWhile(work: (to: number) => Promise<void>): AsyncGenerator<Uint8Array> {
  const { from, to } = openPipe();
  const done = work(to).finally(() => closeSync(to));
  // `done` is awaited below in any case.
  done.catch(() => {});
  try {
    for (;;) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const { bytesRead } = await readSome(from, chunk, 0, chunk.length, null);
      if (bytesRead === 0) break;
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    closeSync(from);
    await done.catch(() => {});
  }
  await done;
}

/** Has `work` read the source's bytes from a file, and resolves with its result. Throws the source's error, before that of `work`. */
export async function writeInto<T>(source: AsyncIterable<Uint8Array>, work: (from: number) => Promise<T>): Promise<T> {
  const { from, to } = openPipe();
  const fed = feed(source, to).then(
    () => null,
    (error: unknown) => ({ error }),
  );
  const made = await work(from)
    .finally(() => closeSync(from))
    .then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
  const broken = await fed;
  // If `work` has stopped reading, its error is the cause.
  if (broken && !("error" in made && isUnread(broken.error))) throw broken.error;
  if ("error" in made) throw made.error;
  return made.value;
}

async function feed(source: AsyncIterable<Uint8Array>, to: number): Promise<void> {
  try {
    for await (const chunk of source) {
      for (let at = 0; at < chunk.length; ) {
        const { bytesWritten } = await writeSome(to, chunk, at, chunk.length - at, null);
        at += bytesWritten;
      }
    }
  } finally {
    closeSync(to);
  }
}

const isUnread = (error: unknown) => error instanceof Error && "code" in error && error.code === "EPIPE";
