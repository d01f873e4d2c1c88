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

function toLine({ data }: StreamEvent): string {
  return `${JSON.stringify(data)}\n`;
}

function toSse({ id, data }: StreamEvent): string {
  return `${id === null ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}

function streamOf({ events, cancel }: EventsReply, write: (event: StreamEvent) => string): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next: Promise<IteratorResult<readonly StreamEvent[], void>> | null = null;
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        next ??= events.next();
        const found = await nextOrPing(next);
        if (found === PING) {
          controller.enqueue(encoder.encode(write(PING)));
          return;
        }
        const { done, value } = found as IteratorResult<readonly StreamEvent[], void>;
        next = null;
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value.map(write).join("")));
      },
      cancel: () => cancel(),
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
