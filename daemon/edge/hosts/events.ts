/** Reads a streamed response of another host: lines of JSON become events again as they arrive. */

import type { EventsReply, StreamEvent } from "../../core/call/operation.ts";
import { parseJson } from "../../core/json.ts";

/** Lines with output are far smaller. */
const MAX_LINE_BYTES = 32 * 1024 * 1024;
/** Emitted if the stream breaks off: it can be requested again. */
const BROKEN: StreamEvent = {
  id: null,
  data: { type: "error", code: "host_unreachable", detail: "The room's host does not answer.", retryable: true },
};

/** Reads the events of a body; calls `close` to end it. */
export function eventsOf(body: ReadableStream<Uint8Array> | Uint8Array | null, close: () => void): EventsReply {
  let isOver = false;
  const cancel = () => {
    isOver = true;
    close();
  };
  const read = async function* (): AsyncGenerator<readonly StreamEvent[]> {
    try {
      for await (const lines of linesOf(body)) if (lines.length > 0) yield lines.map(eventOf);
    } catch {
      if (!isOver) yield [BROKEN];
    } finally {
      cancel();
    }
  };
  return { events: read(), cancel };
}

/** Complete lines, chunk by chunk. Throws for a line above the limit. */
async function* linesOf(body: ReadableStream<Uint8Array> | Uint8Array | null): AsyncGenerator<string[]> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  for await (const bytes of piecesOf(body)) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE_BYTES) throw new Error(`a line of over ${MAX_LINE_BYTES} bytes`);
    yield lines.filter((line) => line !== "");
  }
  if (rest !== "") throw new Error("a line that has no end");
}

function piecesOf(body: ReadableStream<Uint8Array> | Uint8Array | null): AsyncIterable<Uint8Array> | Uint8Array[] {
  if (body instanceof ReadableStream) return body as unknown as AsyncIterable<Uint8Array>;
  return body === null ? [] : [body];
}

function eventOf(line: string): StreamEvent {
  const { data_b64, ...data } = parseJson(line) as Record<string, unknown>;
  const id = typeof data.seq === "number" ? data.seq : null;
  return typeof data_b64 === "string" ? { id, data, data_b64: Buffer.from(data_b64, "base64") } : { id, data };
}
