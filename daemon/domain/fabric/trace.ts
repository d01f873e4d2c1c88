/**
 * Owns how a trace goes on from who sends a message to who reads it: by the message's own headers, so that whoever has the message
 * can continue it.
 */
import { readTraceparent, TRACEPARENT, type TraceContext, writeTraceparent } from "../../../shared/traceparent.ts";
import type { CallTrace, Traces } from "../../core/traces.ts";
import type { MessageRow } from "./table.ts";

type Headers = MessageRow["headers"];

/** What a message continues; null where its headers say nothing. */
export function traceOf(headers: Headers = {}): TraceContext | null {
  return readTraceparent(headers[TRACEPARENT]);
}

/** A message's headers with the place in the trace of who sends it. What the sender has said itself stays. */
export function withTrace(headers: Headers, context: TraceContext | null): Headers {
  if (context === null || Object.hasOwn(headers, TRACEPARENT)) return headers;
  return { ...headers, [TRACEPARENT]: writeTraceparent(context) };
}

/** Tells of messages that are read for the first time: each within its sender's trace, and linked to the call that reads it. */
export function tellRead(
  traces: Traces,
  reader: { agent_id: string; org_id: string; room_id: string; trace: CallTrace },
  rows: readonly MessageRow[],
): void {
  for (const { headers, created_at, message_id, seq, source, kind } of rows) {
    const sent = traceOf(headers);
    if (sent === null) continue;
    const at = Date.parse(created_at);
    const links = reader.trace.context ? [reader.trace.context] : [];
    traces.begin(sent, { name: "message", kind: "consumer", at }).end({
      links,
      attributes: {
        "roomd.org_id": reader.org_id,
        "roomd.room_id": reader.room_id,
        "roomd.agent_id": reader.agent_id,
        "roomd.message_id": message_id,
        "roomd.message_kind": kind,
        "roomd.source": source,
        "roomd.seq": seq,
      },
    });
  }
}
