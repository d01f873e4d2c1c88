/**
 * Owns how an answer that goes on is sent: as lines of JSON, or as server-sent events to those who accept them. What is not read
 * is not asked for; who stops reading for good is not waited for by anyone.
 */
import type { EventsReply, StreamEvent } from "../../core/operation.ts";

/** So that proxies and clients know that the stream is alive. */
const PING_EVERY_MS = 15_000;
const PING: StreamEvent = { id: null, data: { type: "ping" } };
const SSE = "text/event-stream";

export function eventsResponse(reply: EventsReply, accept: string | null, headers: Headers): Response {
  const asSse = accept?.toLowerCase().includes(SSE) ?? false;
  headers.set("Content-Type", asSse ? SSE : "application/x-ndjson");
  headers.set("X-Accel-Buffering", "no");
  return new Response(streamOf(reply, asSse ? toSse : toLine), { headers });
}

type Write = (event: StreamEvent) => string;

function toLine(event: StreamEvent): string {
  return `${jsonOf(event)}\n`;
}

function toSse(event: StreamEvent): string {
  return `${event.id === null ? "" : `id: ${event.id}\n`}data: ${jsonOf(event)}\n\n`;
}

/** Output is most of what is ever sent, and base64 needs no escapes: it is put in as it is. */
function jsonOf({ data, data_b64 }: StreamEvent): string {
  const json = JSON.stringify(data);
  return data_b64 ? `${json.slice(0, -1)},"data_b64":"${base64(data_b64)}"}` : json;
}

function base64({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64");
}

function streamOf({ events, cancel, slow }: EventsReply, write: Write): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next: Promise<IteratorResult<readonly StreamEvent[], void>> | null = null;
  let untaken: Timer | undefined;
  /** From the moment that something was sent until the reader asks for more. */
  const watch = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    if (!slow) return;
    untaken = setTimeout(() => {
      slow.cut();
      controller.error(new Error("the reader is too slow"));
    }, slow.ms);
  };
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        clearTimeout(untaken);
        next ??= events.next();
        const found = await nextOrPing(next);
        if (found === PING) {
          controller.enqueue(encoder.encode(write(PING)));
          return watch(controller);
        }
        const { done, value } = found as IteratorResult<readonly StreamEvent[], void>;
        next = null;
        if (done) controller.close();
        else {
          controller.enqueue(encoder.encode(value.map(write).join("")));
          watch(controller);
        }
      },
      cancel: () => {
        clearTimeout(untaken);
        cancel();
      },
    },
    { highWaterMark: 0 },
  );
}

async function nextOrPing<T>(next: Promise<T>): Promise<T | StreamEvent> {
  const { promise, resolve } = Promise.withResolvers<StreamEvent>();
  const timer = setTimeout(resolve, PING_EVERY_MS, PING);
  try {
    return await Promise.race([next, promise]);
  } finally {
    clearTimeout(timer);
  }
}
