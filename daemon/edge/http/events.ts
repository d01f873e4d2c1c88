/**
 * Streamed responses: lines of JSON, or server-sent events for clients that accept them. Nothing is requested ahead of the reader; a reader
 * that stops permanently is disconnected.
 */

import type { EventsReply, StreamEvent } from "../../core/call/operation.ts";
import { startTimer, stopTimer } from "../../core/clock.ts";
import { orAfter } from "../../core/concurrency/published.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";

/** Keep-alive for proxies and clients. */
const PING_EVERY_MS = 15_000;
const PING: StreamEvent = { id: null, data: { type: "ping" } };
const SSE = "text/event-stream";
const NDJSON = "application/x-ndjson";

/** Whether the caller accepts lines of JSON instead of one document. */
export function takesLines(headers: Headers): boolean {
  return headers.get("accept")?.toLowerCase().includes(NDJSON) ?? false;
}

export function eventsResponse(reply: EventsReply, accept: string | null, headers: Record<string, string>): Response {
  const asSse = accept?.toLowerCase().includes(SSE) ?? false;
  headers["Content-Type"] = asSse ? SSE : NDJSON;
  headers["X-Accel-Buffering"] = "no";
  const { lines } = reply;
  const stream =
    lines && !asSse ? streamOf(reply, lines, asIs) : streamOf(reply, reply.events, asSse ? toSse : toLines);
  return new Response(stream, { headers });
}

const asIs = (lines: Uint8Array | readonly StreamEvent[]) => (lines instanceof Uint8Array ? lines : toLines(lines));

type Write = (events: readonly StreamEvent[]) => Uint8Array;

const toLines = once((events) => joined(events.map((event) => around(event, "", "\n"))));

const toSse = once((events) =>
  joined(events.map((event) => around(event, `${event.id === null ? "" : `id: ${event.id}\n`}data: `, "\n\n"))),
);

/** Serializes events for many readers only once. */
function once(write: Write): Write {
  const written = new WeakMap<readonly StreamEvent[], Uint8Array>();
  return (events) => {
    if (events[0]?.json === undefined) return write(events);
    const bytes = written.get(events) ?? write(events);
    written.set(events, bytes);
    return bytes;
  };
}

/** The text before and after an event's bytes. */
interface EventText {
  before: string;
  bytes: Uint8Array | undefined;
  after: string;
}

/** Output is most of the traffic, and base64 needs no escapes: it is inserted as it is. */
function around(
  { data, json = JSON.stringify(data), data_b64: bytes }: StreamEvent,
  before: string,
  after: string,
): EventText {
  if (!bytes) return { before: `${before}${json}`, bytes, after };
  return { before: `${before}${json.slice(0, -1)},"data_b64":"`, bytes, after: `"}${after}` };
}

/** Joins all parts in one buffer without intermediate strings, which would be most of the garbage at full speed. */
function joined(parts: readonly EventText[]): Uint8Array {
  const lengths = parts.map(
    ({ before, bytes, after }) =>
      Buffer.byteLength(before) + Math.ceil((bytes?.byteLength ?? 0) / 3) * 4 + after.length,
  );
  const all = Buffer.allocUnsafeSlow(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const { before, bytes, after } of parts) {
    at += all.write(before, at);
    if (bytes) at += all.write(base64(bytes), at, "latin1");
    at += all.write(after, at);
  }
  return all;
}

function base64({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64");
}

function streamOf<Value>(
  { cancel, slow }: EventsReply,
  values: AsyncGenerator<Value>,
  write: (value: Value | readonly StreamEvent[]) => Uint8Array,
): ReadableStream<Uint8Array> {
  let next: Promise<IteratorResult<Value, void>> | null = null;
  let untaken: Timer | undefined;
  const turns = new Pieces(loopTime, loopTime.owner, "stream");
  /** Runs from a write until the reader requests more. */
  const watch = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    if (!slow) return;
    untaken = startTimer(() => {
      slow.cut();
      controller.error(new Error("the reader is too slow"));
    }, slow.ms);
  };
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        stopTimer(untaken);
        await turns.next();
        next ??= values.next();
        const found = await orAfter(next, PING_EVERY_MS, PING);
        if (found === PING) {
          controller.enqueue(write([PING]));
          return watch(controller);
        }
        const { done, value } = found as IteratorResult<Value, void>;
        next = null;
        if (done) controller.close();
        else {
          controller.enqueue(write(value));
          watch(controller);
        }
      },
      cancel: () => {
        stopTimer(untaken);
        cancel();
      },
    },
    { highWaterMark: 0 },
  );
}
