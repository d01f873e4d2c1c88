/** A part of a file as a stream. The stream owns the file: it closes it at the end, on failure and on cancellation. */

import { startTimer, stopTimer } from "../../core/clock.ts";
import { CHUNK_BYTES, type OpenFile } from "./open-file.ts";

// An answer with a body that is never read (a HEAD) must not keep its file open.
const FIRST_READ_MS = 30_000;

/** Exactly `length` bytes from `offset`, read on demand. Fails if the file has become shorter. */
export function fileStream(
  file: OpenFile,
  offset: number,
  length: number,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  const end = offset + length;
  let at = offset;
  const closeFile = async () => {
    stopTimer(unread);
    signal.removeEventListener("abort", closeSoon);
    await file[Symbol.asyncDispose]();
  };
  // After this the next read fails, and so does the stream: no reader waits for it any more.
  const closeSoon = () => void closeFile().catch(() => {});
  const unread = startTimer(closeSoon, FIRST_READ_MS);
  unread.unref();
  signal.addEventListener("abort", closeSoon, { once: true });
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        stopTimer(unread);
        try {
          const bytes = await file.read(at, Math.min(CHUNK_BYTES, end - at));
          at += bytes.length;
          if (bytes.length > 0) controller.enqueue(bytes);
          else if (at < end) throw new Error("the file became shorter while it was read");
          if (at < end) return;
          await closeFile();
          controller.close();
        } catch (error) {
          await closeFile();
          throw error;
        }
      },
      cancel: closeFile,
    },
    { highWaterMark: 0 },
  );
}
