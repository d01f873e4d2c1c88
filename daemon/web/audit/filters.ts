/** The filters of the audit's page: in the address, for the API and the command line, and for matching a record. Pure. */
import type { OUTCOMES as AllOutcomes, SOURCES as AllSources, AuditRecord } from "../../../shared/api/audit.ts";
import { isReading } from "../../../shared/audit-reads.ts";

/** Names of the URL's query parameters, in display order. */
export const FIELDS = [
  "room",
  "agent",
  "event",
  "outcome",
  "source",
  "actor_id",
  "request_id",
  "trace_id",
  "audit_id",
  "since",
  "until",
] as const;
export type Field = (typeof FIELDS)[number];

export const OUTCOMES = ["success", "denied", "error"] as const satisfies typeof AllOutcomes;
export const SOURCES = ["rest", "mcp", "vsock", "ssh", "web", "cli", "reconciler"] as const satisfies typeof AllSources;

export interface Filters {
  by: Partial<Record<Field, string>>;
  /** Whether read-only calls are shown too. */
  hasReads: boolean;
}

/** The service accepts no longer values. */
const LONGEST = 128;

export function filtersOf(query: URLSearchParams): Filters {
  const by: Filters["by"] = {};
  for (const field of FIELDS) {
    const value = query.get(field)?.trim().slice(0, LONGEST);
    if (value && isOne(field, value)) by[field] = value;
  }
  return { by, hasReads: isNamed(by) || query.get("reads") === "shown" };
}

/** A single record, or those of one request or trace, are always shown. */
export const isNamed = ({ audit_id, request_id, trace_id }: Filters["by"]): boolean =>
  [audit_id, request_id, trace_id].some((each) => each !== undefined);

function isOne(field: Field, value: string): boolean {
  if (field === "outcome") return OUTCOMES.some((each) => each === value);
  if (field === "source") return SOURCES.some((each) => each === value);
  return field === "since" || field === "until" ? !Number.isNaN(momentOf(value)) : true;
}

/** Parses RFC 3339 or UNIX seconds, both accepted by the API. */
export const momentOf = (text: string): number => (/^[\d.]+$/.test(text) ? Number(text) * 1000 : Date.parse(text));

export function apiQuery({ by, hasReads }: Filters): Record<string, string | boolean> {
  const { room, agent, ...rest } = by;
  return {
    ...(room === undefined ? {} : { room_id: room }),
    ...(agent === undefined ? {} : { agent_id: agent }),
    ...rest,
    ...(hasReads ? {} : { reads: false }),
  };
}

export function fits({ by, hasReads }: Filters, record: AuditRecord): boolean {
  const is = (filter: string | undefined, value: string | null) => filter === undefined || filter === value;
  const at = Date.parse(record.at);
  return (
    (hasReads || !isReading(record)) &&
    is(by.room, record.room_id) &&
    is(by.agent, record.agent_id) &&
    (by.event === undefined || record.event.startsWith(by.event)) &&
    is(by.outcome, record.outcome) &&
    is(by.source, record.source) &&
    is(by.actor_id, record.actor.id) &&
    is(by.request_id, record.request_id) &&
    (by.trace_id === undefined || by.trace_id === record.details.trace_id) &&
    is(by.audit_id, record.audit_id) &&
    (by.since === undefined || at >= momentOf(by.since)) &&
    (by.until === undefined || at <= momentOf(by.until))
  );
}

const OPTIONS: Record<Field, string> = {
  room: "--room",
  agent: "--agent",
  event: "--event",
  outcome: "--outcome",
  source: "--source",
  actor_id: "--actor",
  request_id: "--request",
  trace_id: "--trace",
  audit_id: "--record",
  since: "--since",
  until: "--until",
};

/** The words of a command line with the same filters. */
export function commandWords(verb: readonly string[], { by, hasReads }: Filters): string[] {
  const options = FIELDS.flatMap((field) => {
    const value = by[field];
    if (value === undefined) return [];
    // A value with a leading dash would be parsed as an option.
    return value.startsWith("-") ? [`${OPTIONS[field]}=${value}`] : [OPTIONS[field], value];
  });
  return [...verb, "--org", ...options, ...(hasReads ? [] : ["--no-reads"])];
}
