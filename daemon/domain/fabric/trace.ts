/**
 * Propagates a trace from a message's sender to its readers in the message's own headers, so that any reader of the message can continue
 * it.
 */
import { readTraceparent, TRACEPARENT, type TraceContext, writeTraceparent } from "../../../shared/traceparent.ts";
import type { CallTrace, Traces } from "../../core/call/traces.ts";
import type { MessageRow } from "./table.ts";

type MessageHeaders = MessageRow["headers"];

/** The trace context that a message continues; null if its headers contain none. */
export function traceOf(headers: MessageHeaders = {}): TraceContext | null {
  return readTraceparent(headers[TRACEPARENT]);
}

/** A message's headers with the sender's trace context. A context that the sender has set itself stays. */
export function withTrace(headers: MessageHeaders, context: TraceContext | null): MessageHeaders {
  if (context === null || Object.hasOwn(headers, TRACEPARENT)) return headers;
  return { ...headers, [TRACEPARENT]: writeTraceparent(context) };
}

/** Reader of a message. */
interface Reader {
  agent_id: string;
  org_id: string;
  room_id: string;
  trace: CallTrace;
}

/** Emits a span for a message that is read for the first time: within its sender's trace, and linked to the call that reads it. */
export function tellRead(
  traces: Traces,
  { trace, ...reader }: Reader,
  row: Pick<MessageRow, "message_id" | "source" | "kind" | "seq" | "created_at" | "headers">,
): void {
  const { message_id, source, kind, seq } = row;
  const attributes = {
    "roomd.org_id": reader.org_id,
    "roomd.room_id": reader.room_id,
    "roomd.agent_id": reader.agent_id,
    "roomd.message_id": message_id,
    "roomd.message_kind": kind,
    "roomd.source": source,
    "roomd.seq": seq,
  };
  const begin = { name: "message", kind: "consumer", at: Date.parse(row.created_at), attributes } as const;
  traces.begin(traceOf(row.headers), begin).end({ links: trace.context ? [trace.context] : [] });
}
