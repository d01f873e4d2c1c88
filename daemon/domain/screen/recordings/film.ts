/**
 * Films (MP4) of recordings, streamed while they are made: a dedicated machine receives the recording, plays it for ffmpeg, and returns the
 * output.
 */
import { FILM_COMMAND } from "../../../../shared/agent-protocol/recording.ts";
import { RUNTIME } from "../../../../shared/agent-protocol/runtime.ts";
import { RECORDED_PER_SECOND, type RecordingRecord } from "../../../../shared/api/recordings.ts";
import { newId, type OrgId } from "../../../../shared/ids.ts";
import { monotonicMs, startTimer, stopTimer } from "../../../core/clock.ts";
import { unlessGivenUp } from "../../../core/concurrency/published.ts";
import type { Log } from "../../../core/log.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import { CHUNK_BYTES, type OpenFile } from "../../../host/files/open-file.ts";
import { type LiveCommand, startCommand } from "../../../host/guest-link/command.ts";
import type { GuestLink } from "../../../host/guest-link/handshake.ts";
import type { ScreenDeps } from "../deps.ts";

/** Fragmented, so that a player can start before the end. Width and height must be even in this pixel format. */
const SCRIPT = `
${RUNTIME}/agent ${FILM_COMMAND} "$@" |
  ffmpeg -nostdin -loglevel error -f rawvideo -pix_fmt rgb0 -s "$1x$2" -r "$4" -i - \\
    -c:v libx264 -preset veryfast -crf 23 -vf 'crop=trunc(iw/2)*2:trunc(ih/2)*2' -pix_fmt yuv420p \\
    -movflags frag_keyframe+empty_moov+default_base_moof -f mp4 -
`;
const MAX_SAID = 2000;

/** Time for the machine to start and to end. */
const USUAL_MS = 600_000;
/** The machine encodes some pictures per second even under emulation. */
const TIMES_ITS_LENGTH = 20;
/** Limit of the total time, since other films wait for the machine. The longest recording, read at the lowest rate, takes six hours. */
const MAX_MS = 8 * 3_600_000;
/** Maximum time until the reader takes the next piece of a film. */
const UNTAKEN_MS = 60_000;
/**
 * Minimum rate of reading: apart from one such wait, a film is read within this multiple of its length. A player reads at playback speed.
 */
const TAKEN_TIMES_ITS_LENGTH = 1.5;

export class Films {
  readonly #withGuest: ScreenDeps["withFilmGuest"];
  readonly #log: Log;
  readonly #stopping = new AbortController();
  /** Each until its machine is removed completely. */
  readonly #made = new Set<Promise<unknown>>();

  constructor({ withFilmGuest, log }: Pick<ScreenDeps, "withFilmGuest" | "log">) {
    this.#withGuest = withFilmGuest;
    this.#log = log;
  }

  /**
   * Resolves once its machine has started the work; it owns the file from then on, and closes it. `signal` aborts it. Throws errors of
   * withFilmGuest. The stream fails if the film could not be completed.
   */
  async make(
    orgId: OrgId,
    record: RecordingRecord,
    file: OpenFile,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    const { width, height, duration_ms, recording_id } = record;
    const started = Promise.withResolvers<LiveCommand>();
    const over = new AbortController();
    const limitMs = Math.min(USUAL_MS + TIMES_ITS_LENGTH * duration_ms, MAX_MS);
    const late = startTimer(() => over.abort(new Error("it took too long")), limitMs);
    const ends = AbortSignal.any([signal, this.#stopping.signal, over.signal]);
    const work = async (link: GuestLink) => {
      ends.throwIfAborted();
      const facts = [Math.max(width, 2), Math.max(height, 2), duration_ms, RECORDED_PER_SECOND].map(String);
      const argv = ["/bin/bash", "-o", "pipefail", "-c", SCRIPT, "film", ...facts];
      const command = await startCommand(link, { exec_id: newId("exe"), argv, env: {} });
      started.resolve(command);
      feed(command, file, record.size_bytes, ends).catch((error: unknown) => over.abort(error));
      // Until it is read to its end, or aborted.
      const never = new Promise<never>(() => {});
      await unlessGivenUp(ends, never).catch(() => {});
    };
    const made = this.#withGuest(orgId, work).catch((error: unknown) => {
      // A caller that has been answered gets no later error.
      if (!(error instanceof ServiceError))
        this.#log.warn("a film's machine", { recording_id, error: describeError(error) });
      started.reject(error);
    });
    const settled = made.finally(async () => {
      stopTimer(late);
      this.#made.delete(settled);
      await file[Symbol.asyncDispose]();
    });
    this.#made.add(settled);
    return this.#streamOf(await started.promise, record, ends, over);
  }

  /** Aborts all films; resolves once their machines are removed completely. */
  async stop(): Promise<void> {
    this.#stopping.abort(new ServiceError("shutting_down"));
    await Promise.allSettled(this.#made);
  }

  #streamOf(
    command: LiveCommand,
    { recording_id, duration_ms }: RecordingRecord,
    ends: AbortSignal,
    over: AbortController,
  ) {
    const output = lastWords(command);
    const pieces = command.stdout[Symbol.asyncIterator]();
    const next = async (): Promise<Uint8Array | null> => {
      const { done, value } = await pieces.next();
      ends.throwIfAborted();
      if (!done) return value;
      const { exit_code } = await command.ended;
      if (exit_code === 0) return null;
      throw new Error(`the conversion failed: ${exit_code}, ${await output}`);
    };
    let leftMs = UNTAKEN_MS + TAKEN_TIMES_ITS_LENGTH * duration_ms;
    let offeredAt = monotonicMs();
    const untakenFrom = () => {
      offeredAt = monotonicMs();
      return startTimer(() => over.abort(new Error("the reader is too slow")), Math.min(UNTAKEN_MS, leftMs));
    };
    let untaken = untakenFrom();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          stopTimer(untaken);
          leftMs = Math.max(0, leftMs - (monotonicMs() - offeredAt));
          try {
            const bytes = await unlessGivenUp(ends, next());
            untaken = untakenFrom();
            if (bytes) return controller.enqueue(bytes);
            controller.close();
          } catch (error) {
            const reason = ends.aborted ? ends.reason : error;
            this.#log.warn("failed to convert a recording", { recording_id, error: describeError(reason) });
            controller.error(reason);
          }
          stopTimer(untaken);
          over.abort();
        },
        cancel: () => {
          stopTimer(untaken);
          over.abort();
        },
      },
      { highWaterMark: 0 },
    );
  }
}

async function feed(command: LiveCommand, file: OpenFile, size: number, ends: AbortSignal): Promise<void> {
  for (let at = 0; at < size && !ends.aborted; ) {
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
    for await (const bytes of stderr ?? []) text = (text + decoder.decode(bytes, { stream: true })).slice(-MAX_SAID);
  } catch {
    // The machine is gone: its output until then is reported.
  }
  return text.trim();
}
