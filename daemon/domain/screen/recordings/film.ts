/**
 * Owns a film of a recording as it is made: the recording goes into a machine that is there for this alone, plays it there for ffmpeg, and
 * what that writes comes out.
 */

import { RECORDED_PER_SECOND, type RecordingRecord } from "../../../../shared/api/recordings.ts";
import { newId } from "../../../../shared/ids.ts";
import type { Log } from "../../../core/log.ts";
import { describeError } from "../../../core/service-error.ts";
import type { OpenFile } from "../../../host/files/open-file.ts";
import { CHUNK_BYTES } from "../../../host/files/open-file.ts";
import { type LiveCommand, startCommand } from "../../../host/guest-link/command.ts";
import type { GuestLink } from "../../../host/guest-link/handshake.ts";

/** Sent as it is made: a player needs no end to begin. Both sides of a picture of this kind are even. */
const SCRIPT = `
/usr/lib/roomd/agent film "$@" |
  ffmpeg -nostdin -loglevel error -f rawvideo -pix_fmt rgb0 -s "$1x$2" -r "$4" -i - \\
    -c:v libx264 -preset veryfast -crf 26 -vf 'crop=trunc(iw/2)*2:trunc(ih/2)*2' -pix_fmt yuv420p \\
    -movflags frag_keyframe+empty_moov+default_base_moof -f mp4 -
`;
const MOST_SAID = 2000;

/**
 * Resolves once its machine works at it; it owns the file then, and closes it. `signal` gives it up. Throws what `withGuest` does. The stream
 * fails where the film could not be made to its end.
 */
export async function makeFilm(
  withGuest: <T>(work: (link: GuestLink) => Promise<T>) => Promise<T>,
  { width, height, duration_ms, size_bytes }: RecordingRecord,
  file: OpenFile,
  { signal, log }: { signal: AbortSignal; log: Log },
): Promise<ReadableStream<Uint8Array>> {
  const begun = Promise.withResolvers<LiveCommand>();
  const over = Promise.withResolvers<void>();
  const giveUp = () => over.resolve();
  signal.addEventListener("abort", giveUp, { once: true });
  const end = () => {
    signal.removeEventListener("abort", giveUp);
    over.resolve();
  };
  const made = withGuest(async (link) => {
    const facts = [Math.max(width, 2), Math.max(height, 2), duration_ms, RECORDED_PER_SECOND].map(String);
    const argv = ["/bin/bash", "-o", "pipefail", "-c", SCRIPT, "film", ...facts];
    const command = await startCommand(link, { exec_id: newId("exe"), argv, env: {} });
    begun.resolve(command);
    void feed(command, file, size_bytes).catch(() => {});
    await over.promise;
  });
  made.catch(begun.reject).finally(async () => await file[Symbol.asyncDispose]());
  const command = await begun.promise;
  const said = lastWords(command);
  const pieces = command.stdout[Symbol.asyncIterator]();
  const next = async (): Promise<Uint8Array | null> => {
    const { done, value } = await pieces.next();
    if (!done) return value;
    const { exit_code } = await command.ended;
    if (exit_code === 0) return null;
    throw new Error(`the film was not made: ${exit_code}, ${await said}`);
  };
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const bytes = await next();
          if (bytes) return controller.enqueue(bytes);
          end();
          controller.close();
        } catch (error) {
          end();
          if (!signal.aborted) log.error("film not made", { error: describeError(error) });
          controller.error(error);
        }
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  );
}

async function feed(command: LiveCommand, file: OpenFile, size: number): Promise<void> {
  for (let at = 0; at < size; ) {
    const bytes = await file.read(at, Math.min(CHUNK_BYTES, size - at));
    if (bytes.length === 0) break;
    await command.write(bytes);
    at += bytes.length;
  }
  command.endInput();
}

async function lastWords({ stderr }: LiveCommand): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  try {
    for await (const bytes of stderr ?? []) text = (text + decoder.decode(bytes, { stream: true })).slice(-MOST_SAID);
  } catch {
    // The machine is gone: what it said until then is told.
  }
  return text.trim();
}
