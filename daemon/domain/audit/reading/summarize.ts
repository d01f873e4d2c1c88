/** Counts of audit records, and a paragraph of text about them. Has no state: reader threads use it too. */
import { count, max, min } from "drizzle-orm";
import type { auditSummary } from "../../../../shared/api/audit.ts";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import type { Steps } from "../../../core/loop/steps.ts";
import type { Queries } from "../../../db/client.ts";
import { matching } from "../rows.ts";
import { audit } from "../table.ts";
import { type Scan, stretches } from "./scan.ts";

export type Summary = OutputOf<typeof auditSummary>;

/** Maximum names in a summary, the most frequent first. */
const MAX_NAMES = 50;
/** Maximum names that are counted separately: an organization may have any number of agents. */
const MAX_COUNTED = 10_000;
const NAMES_IN_TEXT = 5;

/** One step per stretch of the chain. */
export function* summarize(queries: Queries, scan: Scan, about: string): Steps<Summary> {
  const outcomes = { success: 0, denied: 0, error: 0 };
  const [events, agents, errors] = [new Counts(), new Counts(), new Counts()];
  let [total, from_at, to_at]: [number, string | null, string | null] = [0, null, null];
  for (const { queries: part, after, last } of stretches(queries, scan)) {
    const { event, outcome, agent_id, error_code } = audit;
    const groups = part
      .select({ event, outcome, agent_id, error_code, n: count(), from: min(audit.at), to: max(audit.at) })
      .from(audit)
      .where(matching({ ...scan, after, last }))
      .groupBy(event, outcome, agent_id, error_code)
      .all();
    for (const group of groups) {
      total += group.n;
      outcomes[group.outcome] += group.n;
      events.add(group.event, group.n);
      agents.add(group.agent_id, group.n);
      errors.add(group.error_code, group.n);
      if (from_at === null || (group.from ?? "") < from_at) from_at = group.from;
      if (to_at === null || (group.to ?? "") > to_at) to_at = group.to;
    }
    yield;
  }
  const summary = {
    total,
    from_at,
    to_at,
    outcomes,
    events: events.most().map(([event, each]) => ({ event, count: each })),
    agents: agents.most().map(([agent_id, each]) => ({ agent_id, count: each })),
    errors: errors.most().map(([code, each]) => ({ code, count: each })),
  };
  return { ...summary, text: textOf(about, summary) };
}

class Counts {
  readonly #counts = new Map<string, number>();

  add(name: string | null, n: number): void {
    if (name === null || (!this.#counts.has(name) && this.#counts.size >= MAX_COUNTED)) return;
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + n);
  }

  most(): [string, number][] {
    return [...this.#counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, MAX_NAMES);
  }
}

/** Sums the counts of each name over several parts of an audit. */
export function mostOf(counts: Iterable<readonly [string, number]>): [string, number][] {
  const all = new Counts();
  for (const [name, n] of counts) all.add(name, n);
  return all.most();
}

export const aboutOf = (roomId: string | undefined) => (roomId === undefined ? "The organization" : `Room ${roomId}`);

/** Text of the summary of an organization, or of its rooms with one name. */
export function summaryText(roomId: string | undefined, summary: Omit<Summary, "text" | "warnings">): string {
  return textOf(aboutOf(roomId), summary);
}

function textOf(about: string, summary: Omit<Summary, "text" | "warnings">): string {
  const { total, from_at, to_at, outcomes, events, agents, errors } = summary;
  if (total === 0) return `${about}: no audit records.`;
  const span = `${minute(from_at)} to ${minute(to_at)} UTC`;
  const { success, denied, error } = outcomes;
  const sentences = [
    `${about}: ${total} ${total === 1 ? "record" : "records"} from ${span}; ${success} succeeded, ${denied} ${denied === 1 ? "was" : "were"} denied, ${error} failed.`,
    named(
      "Most often",
      events.map(({ event, count: n }) => [event, n]),
    ),
    named(
      "Agents",
      agents.map(({ agent_id, count: n }) => [agent_id, n]),
    ),
    named(
      "Reasons for refusals and failures",
      errors.map(({ code, count: n }) => [code, n]),
    ),
  ];
  return sentences.filter((sentence) => sentence !== "").join(" ");
}

function named(label: string, counts: [string, number][]): string {
  if (counts.length === 0) return "";
  const shown = counts.slice(0, NAMES_IN_TEXT).map(([name, n]) => `${name} (${n})`);
  const more = counts.length > NAMES_IN_TEXT ? ", and others" : "";
  return `${label}: ${shown.join(", ")}${more}.`;
}

const minute = (moment: string | null): string => (moment ?? "").slice(0, 16).replace("T", " ");
