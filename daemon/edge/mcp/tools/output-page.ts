/** Reads an execution's output in pages: as much as fits, and the position of the next page. Consecutive pages contain every byte once. */
import { executionStream } from "../../../../shared/api/executions.ts";
import { startTimer, stopTimer } from "../../../core/clock.ts";
import { Capture } from "../../../domain/sandboxes/executions/run/capture.ts";
import type { Arguments, Refused, ToolCall } from "../call.ts";
import { firstOf } from "../output-text.ts";

/** A position in the output: after a piece, and after a number of bytes of the next one. */
export interface OutputPosition {
  after: number;
  after_bytes: number;
}

export interface Page {
  kind: "page";
  stdout: Buffer;
  stderr: Buffer;
  /** Position of the next page. */
  place: OutputPosition;
  /** The page is full and more output follows. */
  full: boolean;
  /** Nothing follows it. */
  ended: boolean;
}

interface PageOptions extends OutputPosition {
  /** The execution: room_id, sandbox and exec_id. */
  path: Arguments;
  /** Most bytes of each stream. */
  most: number;
  /** How long to wait for future output. */
  waitMs: number;
}

export async function readPage(call: ToolCall, options: PageOptions): Promise<Page | Refused> {
  const { path, most, waitMs, after, after_bytes } = options;
  const follow = waitMs > 0;
  const reply = await call.ask(executionStream, { ...path, after, follow });
  if (reply.kind === "problem") return reply;
  const pager = new Pager({ after, after_bytes }, most);
  const stream = reply.kind === "done" ? reply.done.events : undefined;
  if (!stream) return pager.page();
  // Existing output also comes from the guest, which may be slow to send it.
  const timer = startTimer(() => stream.cancel(), follow ? call.waitMs(waitMs) : call.leftMs);
  try {
    for await (const events of stream.events) {
      for (const { data, data_b64 } of events) pager.take(data as StreamedEvent, data_b64);
      if (pager.over) break;
    }
  } finally {
    stopTimer(timer);
    stream.cancel();
  }
  return pager.page();
}

interface StreamedEvent {
  seq?: number;
  type: "started" | "stdout" | "stderr" | "exit" | "error";
}

class Pager {
  readonly #most: number;
  readonly #streams: { stdout: Capture; stderr: Capture };
  #place: OutputPosition;
  #full = false;
  #ended = false;

  constructor(place: OutputPosition, most: number) {
    this.#most = most;
    this.#place = place;
    this.#streams = { stdout: new Capture(most), stderr: new Capture(most) };
  }

  get over(): boolean {
    return this.#full || this.#ended;
  }

  take({ seq, type }: StreamedEvent, bytes: Uint8Array | undefined): void {
    if (this.over) return;
    if (type === "exit") this.#ended = true;
    if ((type !== "stdout" && type !== "stderr") || !bytes || seq === undefined) return;
    const { after, after_bytes } = this.#place;
    const fresh = Buffer.from(bytes).subarray(after_bytes);
    const taken = this.#fitting(type, fresh);
    this.#streams[type].take(fresh.subarray(0, taken));
    this.#full = taken < fresh.length;
    this.#place = this.#full ? { after, after_bytes: after_bytes + taken } : { after: seq, after_bytes: 0 };
  }

  /** Number of bytes that fit the page, cut between characters unless the page is shorter than one character. */
  #fitting(type: "stdout" | "stderr", fresh: Buffer): number {
    const { stdout, stderr } = this.#streams;
    const room = this.#most - this.#streams[type].bytes().length;
    const whole = firstOf(fresh, room).length;
    const isEmpty = stdout.bytes().length + stderr.bytes().length === 0;
    return whole === 0 && isEmpty ? Math.min(room, fresh.length) : whole;
  }

  page(): Page {
    const { stdout, stderr } = this.#streams;
    const streams = { stdout: stdout.bytes(), stderr: stderr.bytes() };
    return { kind: "page", ...streams, place: this.#place, full: this.#full, ended: this.#ended };
  }
}
