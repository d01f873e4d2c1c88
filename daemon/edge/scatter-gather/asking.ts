/** Requests to other hosts for their part of a response: query, reply, and this host's own part. */
import type { Operation } from "../../../shared/api/contract.ts";
import type { EventsReply, StreamEvent } from "../../core/call/operation.ts";
import type { Input } from "../pipeline/placement.ts";
import type { PipelineRequest } from "../pipeline/request-context.ts";

export type Asking = NonNullable<PipelineRequest["ask"]>;

/** An input as the query of a URL. */
export function queryOf({ params }: Operation, input: Input): Record<string, string> {
  const entries = Object.entries(input).filter(
    ([name, value]) => value !== undefined && !Object.hasOwn(params.properties, name),
  );
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

/** The lines of a response. Throws if it is of another kind. */
export function linesIn({ status, events }: Awaited<ReturnType<Asking>>): EventsReply {
  if (status !== 200 || !events) throw new Error(`a host answered ${status} instead of lines`);
  return events;
}

/** Prepends one event: the head of a response is sent with its first event. */
export function ledBy(first: StreamEvent, { events, lines, ...reply }: EventsReply): EventsReply {
  const all = led([first], events);
  if (!lines) return { ...reply, events: all };
  return { ...reply, events: all, lines: led(Buffer.from(`${JSON.stringify(first.data)}\n`), lines) };
}

async function* led<Value>(first: Value, values: AsyncGenerator<Value>): AsyncGenerator<Value> {
  yield first;
  yield* values;
}

export const firstOutcome = ({ outcomes }: Operation): string => Object.keys(outcomes)[0] ?? "ok";
