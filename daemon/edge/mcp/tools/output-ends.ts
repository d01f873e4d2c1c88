/** The beginning and the end of an execution's output, read as a stream; the middle is dropped. */
import { executionGet, executionStream } from "../../../../shared/api/executions.ts";
import { startTimer, stopTimer } from "../../../core/clock.ts";
import type { Arguments, Refused, ToolCall } from "../call.ts";
import { firstOf, HEAD_BYTES, lastOf, type Streams, TAIL_BYTES } from "../output-text.ts";
import type { OutputPosition } from "./output-page.ts";

/** Output of an endless command is no longer read after this many bytes. */
const MAX_READ_BYTES = 64 * 1024 * 1024;

export interface OutputEnds {
  kind: "ends";
  head: Streams;
  tail: Streams;
  left_out_bytes: number;
  /** Position of the part that is left out. */
  rest: OutputPosition;
  /** Position of the next output. */
  place: OutputPosition;
  /** Nothing follows. */
  ended: boolean;
}

interface Options extends OutputPosition {
  /** The execution: room_id, sandbox and exec_id. */
  path: Arguments;
  waitMs: number;
}

/** Reads from a position on; if that output is no longer retained, from the oldest retained. */
export async function readEnds(call: ToolCall, options: Options): Promise<OutputEnds | Refused> {
  const found = await read(call, options);
  if (found.kind === "ends" || found.problem.code !== "history_gone") return found;
  const record = await call.ask(executionGet, options.path);
  if (record.kind !== "done") return found;
  const kept = { after: Math.max(0, Number(record.body.oldest_seq) - 1), after_bytes: 0 };
  return await read(call, { ...options, ...kept });
}

async function read(call: ToolCall, { path, waitMs, after, after_bytes }: Options): Promise<OutputEnds | Refused> {
  const follow = waitMs > 0;
  const reply = await call.ask(executionStream, { ...path, after, follow });
  if (reply.kind === "problem") return reply;
  const collector = new Collector({ after, after_bytes });
  const stream = reply.kind === "done" ? reply.done.events : undefined;
  if (!stream) return collector.ends();
  const timer = startTimer(() => stream.cancel(), follow ? call.waitMs(waitMs) : call.leftMs);
  try {
    for await (const events of stream.events) {
      for (const { data, data_b64 } of events) collector.take(data as { seq?: number; type: string }, data_b64);
      if (collector.over) break;
    }
  } finally {
    stopTimer(timer);
    stream.cancel();
  }
  return collector.ends();
}

interface Piece {
  type: "stdout" | "stderr";
  bytes: Buffer;
}

class Collector {
  readonly #head: Piece[] = [];
  #tail: Piece[] = [];
  #headBytes = 0;
  #tailBytes = 0;
  #read = 0;
  #headOpen = true;
  #rest: OutputPosition;
  #place: OutputPosition;
  #ended = false;

  constructor(place: OutputPosition) {
    this.#rest = place;
    this.#place = place;
  }

  get over(): boolean {
    return this.#ended || this.#read > MAX_READ_BYTES;
  }

  take({ seq, type }: { seq?: number; type: string }, data: Uint8Array | undefined): void {
    if (type === "exit") this.#ended = true;
    if ((type !== "stdout" && type !== "stderr") || !data || seq === undefined) return;
    const skipped = this.#place.after_bytes;
    const bytes = Buffer.from(data).subarray(skipped);
    this.#place = { after: seq, after_bytes: 0 };
    this.#read += bytes.length;
    const left = this.#headOpen ? this.#fillHead({ type, bytes }, { seq, skipped }) : bytes;
    if (left.length === 0) return;
    this.#tail.push({ type, bytes: left });
    this.#tailBytes += left.length;
    for (
      let first = this.#tail[0];
      first && this.#tailBytes - first.bytes.length >= TAIL_BYTES;
      first = this.#tail[0]
    ) {
      this.#tailBytes -= first.bytes.length;
      this.#tail.shift();
    }
  }

  /** Fills the head, and returns the rest of the chunk. */
  #fillHead({ type, bytes }: Piece, { seq, skipped }: { seq: number; skipped: number }): Buffer {
    const taken = firstOf(bytes, HEAD_BYTES - this.#headBytes);
    if (taken.length > 0) this.#head.push({ type, bytes: taken });
    this.#headBytes += taken.length;
    this.#headOpen = taken.length === bytes.length && this.#headBytes < HEAD_BYTES;
    const before = { after: this.#rest.after, after_bytes: skipped + taken.length };
    this.#rest = taken.length === bytes.length ? { after: seq, after_bytes: 0 } : before;
    return bytes.subarray(taken.length);
  }

  ends(): OutputEnds {
    const excess = Math.max(0, this.#tailBytes - TAIL_BYTES);
    const [first, ...others] = this.#tail;
    const tail = first ? [{ ...first, bytes: lastOf(first.bytes, first.bytes.length - excess) }, ...others] : [];
    const shown = [...this.#head, ...tail].reduce((sum, { bytes }) => sum + bytes.length, 0);
    return {
      kind: "ends",
      head: streamsOf(this.#head),
      tail: streamsOf(tail),
      left_out_bytes: this.#read - shown,
      rest: this.#rest,
      place: this.#place,
      ended: this.#ended,
    };
  }
}

function streamsOf(pieces: readonly Piece[]): Streams {
  const of = (type: Piece["type"]) =>
    Buffer.concat(pieces.flatMap((piece) => (piece.type === type ? [piece.bytes] : [])));
  return { stdout: of("stdout"), stderr: of("stderr") };
}
