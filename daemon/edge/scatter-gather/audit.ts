/**
 * Merges the audit of all hosts. Each host has its own chain for an organization, in its own order; a page has the records of all by time,
 * and its cursor has the position in each chain. A host that does not answer when a list starts is left out of all its pages: its records
 * may be older than those already listed.
 */
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import {
  type AuditRecord,
  DEFAULT_AUDIT_PAGE,
  type orgAuditList,
  type orgAuditSummary,
  type orgAuditVerify,
} from "../../../shared/api/audit.ts";
import type { InputOf, OutputOf } from "../../../shared/api/contract.ts";
import type { Caller } from "../../core/call/operation.ts";
import { wallMs } from "../../core/clock.ts";
import { cursorAfterRecord, MAX_NAMED, mostOf, summaryText, type VerdictPart } from "../../domain/audit/index.ts";
import { byChain, cursorOf, type Places, positionIn } from "./places.ts";
import type { HostPart, Merging } from "./rule.ts";
import { warned, warningsOf, withWarnings } from "./words.ts";

/** A chain may be long and matches rare; an unreachable host is detected earlier by the HTTP client. */
const PATIENCE_MS = 10_000;
/** Every record is read. */
const VERIFY_MS = 60_000;

type Query = InputOf<typeof orgAuditList>;
type Page = OutputOf<typeof orgAuditList>;

const orderOf = ({ order }: Pick<Query, "order">) => order ?? "desc";

export const listOfAudit: Merging<typeof orgAuditList> = {
  patienceMs: PATIENCE_MS,

  part: (chain, { caller, input }) => {
    if (input.cursor === undefined) return input;
    const order = orderOf(input);
    const { places, since } = positionIn(kindOf(caller, order), input.cursor);
    // All records of a host that has joined since come after the existing ones.
    const isNew = order === "asc" && since !== null && Date.parse(chain.joined_at) > since;
    const seq = places[chain.name] ?? (isNew ? 0 : undefined);
    return seq === undefined ? null : after(seq, caller, input);
  },

  // The hosts of the cursor's chains are no members any more.
  none: () => ({ items: [], next_cursor: null }),

  merge: (own, others, { caller, input, silent }) => {
    const order = orderOf(input);
    const { items, places, isMore } = inOrder(byChain([own, ...others]), order, input.limit ?? DEFAULT_AUDIT_PAGE);
    return {
      items,
      next_cursor: isMore
        ? cursorOf(kindOf(caller, order), { places, since: begunAt(kindOf(caller, order), input) })
        : null,
      ...withWarnings(silent, "its records are not listed."),
    };
  },

  lines: { after: (seq, { caller, input }) => after(seq, caller, input), orderOf },
};

/** Time of a list's first page. */
function begunAt(kind: string, { cursor }: Query): number | null {
  return cursor === undefined ? wallMs() : positionIn(kind, cursor).since;
}

const after = (seq: number, { org_id }: Caller, input: Query): Query => ({
  ...input,
  cursor: cursorAfterRecord(org_id, orderOf(input), seq),
});

const kindOf = ({ org_id }: Caller, order: string) => `audit of chains ${org_id} ${order}`;

/** The first records of all chains, each chain in its own order, and the position at which each continues. */
function inOrder(parts: readonly HostPart<Page>[], order: "asc" | "desc", limit: number) {
  const rest = parts.map(({ chain, body }) => ({
    chain,
    left: [...body.items],
    isMore: body.next_cursor !== null,
    body,
  }));
  const comesFirst = (a: AuditRecord, b: AuditRecord) => (order === "asc" ? a.at < b.at : a.at > b.at);
  const items: AuditRecord[] = [];
  while (items.length < limit) {
    let next: (typeof rest)[number] | undefined;
    for (const part of rest) {
      const [head] = part.left;
      const [best] = next?.left ?? [];
      if (head && (!best || comesFirst(head, best))) next = part;
    }
    const head = next?.left.shift();
    if (!head) break;
    items.push(head);
  }
  const places: Places = {};
  for (const { chain, left, body } of rest) {
    const taken = body.items.length - left.length;
    places[chain] = placeAfter(body.items, taken, order);
  }
  return { items, places, isMore: rest.some(({ left, isMore }) => left.length > 0 || isMore) };
}

/** The position at which a chain continues after `taken` of its records; if none were taken, just before the first one returned. */
function placeAfter(items: readonly AuditRecord[], taken: number, order: "asc" | "desc"): number {
  const last = items[taken - 1];
  if (last) return last.seq;
  const step = order === "asc" ? -1 : 1;
  return items[0] ? items[0].seq + step : 0;
}

export const summaryOfAudit: Merging<typeof orgAuditSummary> = {
  patienceMs: PATIENCE_MS,
  merge: ({ body: own }, others, { input, silent }) => {
    const parts = [own, ...others.map(({ body }) => body)].filter(({ total }) => total > 0);
    const added = (of: (part: typeof own) => number) => parts.reduce((sum, part) => sum + of(part), 0);
    const moments = (of: (part: typeof own) => string | null) => parts.flatMap((part) => of(part) ?? []).sort();
    const summary = {
      total: added(({ total }) => total),
      from_at: moments(({ from_at }) => from_at)[0] ?? null,
      to_at: moments(({ to_at }) => to_at).at(-1) ?? null,
      outcomes: {
        success: added(({ outcomes }) => outcomes.success),
        denied: added(({ outcomes }) => outcomes.denied),
        error: added(({ outcomes }) => outcomes.error),
      },
      events: mostOf(parts.flatMap(({ events }) => events.map(({ event, count }) => [event, count] as const))).map(
        ([event, count]) => ({ event, count }),
      ),
      agents: mostOf(
        parts.flatMap(({ agents }) => agents.map(({ agent_id, count }) => [agent_id, count] as const)),
      ).map(([agent_id, count]) => ({ agent_id, count })),
      errors: mostOf(parts.flatMap(({ errors }) => errors.map(({ code, count }) => [code, count] as const))).map(
        ([code, count]) => ({ code, count }),
      ),
    };
    const missing = "its records are not counted.";
    const text = [summaryText(input.room_id, summary), ...warningsOf(silent, missing)].join(" ");
    return { ...summary, text, ...withWarnings(silent, missing) };
  },
};

/** Every host has its own chain: the organization's audit is intact if all are, and no chain contradicts another. */
export const verdictOfAll: Merging<typeof orgAuditVerify> = {
  patienceMs: VERIFY_MS,
  merge: (own, others, { silent }) => {
    const given = [own, ...others] as HostPart<VerdictPart>[];
    const hosts = new Set(given.map(({ host }) => host));
    const lost = given.flatMap(firstLost).filter(({ host }) => hosts.has(host));
    const parts = given.map(({ host, body }) => ({
      host,
      body: lost.filter((each) => each.host === host).reduce(brokenAt, body),
    }));
    const [{ body: first }] = parts as [(typeof parts)[number]];
    const { ok, from_seq, to_seq, broken_at } = parts.find(({ body }) => !body.ok)?.body ?? first;
    return {
      ...{ ok, from_seq, to_seq, broken_at },
      hosts: parts.map(({ host, body: { ok, from_seq, to_seq, broken_at } }) => ({
        ...{ host, ok, from_seq, to_seq, broken_at },
      })),
      ...warned([
        ...parts.flatMap(({ host, body }) => (body.warnings ?? []).map((warning) => `${host}: ${warning}`)),
        ...lost.map(
          ({ by, host, seq }) => `Records of the host ${by} name record ${seq} of ${host}, which ${host} lacks.`,
        ),
        ...warningsOf(silent, "its chain is not verified."),
      ]),
    };
  },
};

const CONTRADICTIONS = Type.Array(Type.Object({ host: Type.String(), seq: Type.Integer({ minimum: 1 }) }), {
  maxItems: MAX_NAMED,
});

/** The first lost record of each other host that records of this host name; none if another host's part is malformed. */
function firstLost({ host: by, body: { contradicts } }: HostPart<VerdictPart>) {
  if (!Value.Check(CONTRADICTIONS, contradicts)) return [];
  const byHost = Map.groupBy(contradicts, ({ host }) => host);
  return [...byHost.values()].map((same) => ({ by, ...same.reduce((a, b) => (b.seq < a.seq ? b : a)) }));
}

function brokenAt(part: VerdictPart, { seq }: { seq: number }): VerdictPart {
  return { ...part, ok: false, from_seq: part.from_seq || 1, broken_at: Math.min(part.broken_at ?? seq, seq) };
}
