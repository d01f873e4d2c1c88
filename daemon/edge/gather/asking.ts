/** Owns how other hosts are asked for their part of an answer: with which query, and by what this host tells its own. */
import type { Operation } from "../../../shared/api/contract.ts";
import type { Done, EventsReply, StreamEvent, Transfer } from "../../core/operation.ts";
import type { Soon } from "../../core/soon.ts";
import type { RoadRequest } from "../walk.ts";

export type Asking = NonNullable<RoadRequest["ask"]>;
export type Input = Record<string, unknown>;
/** What this host has to say; `transfer` where that is not as the caller has sent it. */
export type Own = (input: Input, transfer?: Transfer) => Soon<Done<Operation>>;

/** An input as it stands in a URL. */
export function queryOf({ params }: Operation, input: Input): Record<string, string> {
  const said = Object.entries(input).filter(
    ([name, value]) => value !== undefined && !Object.hasOwn(params.properties, name),
  );
  return Object.fromEntries(said.map(([name, value]) => [name, String(value)]));
}

/** The lines of an answer. Throws where it is another. */
export function linesIn({ status, events }: Awaited<ReturnType<Asking>>): EventsReply {
  if (status !== 200 || !events) throw new Error(`a host answered ${status} instead of lines`);
  return events;
}

/** Events with one before them: the head of an answer goes out with what comes first. */
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
