/**
 * Comparison of a chain with its anchors, which a party that can change this host's data cannot change: finds truncated and altered
 * records.
 */
import type { Anchor, AnchorStore } from "../../../core/anchor-store.ts";
import { now } from "../../../core/clock.ts";
import { inPieces, type Steps } from "../../../core/loop/steps.ts";
import { type Queries, stepsAtOneMoment } from "../../../db/client.ts";
import { reopenClosedFiles } from "../../../db/closed-files.ts";
import { chainHead } from "../chain/chain-head.ts";
import { type ChainKey, chainKey, orgOfChain } from "../chain/chain-key.ts";
import type { Verdict } from "../chain/hash-chain.ts";
import { walkOf } from "../chain/time-slices.ts";
import { readableRecords } from "../reading/scan.ts";
import { chainStart, hashAt } from "../rows.ts";
import { appendAudit } from "../store.ts";

/** Anchors of one read. */
const AT_ONCE = 200;

/** The verdict on a chain, extended by its anchors after the record `compared`. Rejects if the anchors cannot be read. */
export async function withAnchors(
  queries: Queries,
  anchors: AnchorStore,
  orgKey: ChainKey,
  verdict: Verdict,
  compared: number,
): Promise<Verdict> {
  const broken = await firstLost(queries, anchors, orgKey, compared);
  if (broken === null || (verdict.broken_at !== null && verdict.broken_at <= broken)) return verdict;
  return { ...verdict, ok: false, from_seq: verdict.from_seq || 1, broken_at: broken };
}

/** The first anchored record that is missing or has changed; null if absent. */
async function firstLost(
  queries: Queries,
  anchors: AnchorStore,
  orgKey: ChainKey,
  compared: number,
): Promise<number | null> {
  const pieces = walkOf(orgKey);
  reopenClosedFiles(queries);
  for (let after = Math.max((chainStart(queries, orgKey)?.seq ?? 1) - 1, compared); ; ) {
    const some = await anchors.after(orgOfChain(orgKey), after, AT_ONCE);
    await pieces.turn();
    const [lost] = await inPieces(stepsAtOneMoment(queries, lostOf(queries, some)), pieces);
    if (lost) return brokenAt(queries, orgKey, lost);
    const last = some.at(-1);
    if (!last || some.length < AT_ONCE) return null;
    after = last.seq;
  }
}

interface LostAnchors {
  last: Anchor[];
  /** The latest anchors that are lost: their chains end earlier or differ. */
  lost: Anchor[];
  /** Anchors that an earlier daemon reported as lost and that still are: their chains may have grown since and been anchored again. */
  told: Anchor[];
  /** How many chains that are. */
  chains: number;
}

/** Checks the latest anchors of all chains and the reported ones. Rejects if the anchors cannot be read. */
export async function lostAnchors(queries: Queries, anchors: AnchorStore): Promise<LostAnchors> {
  const last = await anchors.last();
  const pieces = walkOf(chainKey(null));
  const done = <T>(steps: Steps<T>) => inPieces(stepsAtOneMoment(queries, steps), pieces);
  const lost = await done(lostOf(queries, last));
  const told = await done(lostOf(queries, await done(toldOf(queries))));
  return { last, lost, told, chains: new Set([...lost, ...told].map(({ org_id }) => org_id)).size };
}

/** A step for each anchor: each may be of another closed day. */
export function* lostOf(queries: Queries, anchors: readonly Anchor[]): Steps<Anchor[]> {
  const lost: Anchor[] = [];
  for (const anchor of anchors) {
    if (isLost(queries, chainKey(anchor.org_id), anchor)) lost.push(anchor);
    yield;
  }
  return lost;
}

/** Event for a chain that lacks an anchored record; stored in the chain of records without an organization. */
const LOST = "audit.anchor_lost";
const ACTOR = { type: "system", id: "audit", name: "audit" };
const MAX_TOLD = 1000;

/** Within a transaction. */
export function tellLost(queries: Queries, { org_id, seq, hash }: Anchor): void {
  const about = { outcome: "error", at: now(), org_id: null, actor: ACTOR, source: "reconciler" } as const;
  appendAudit(queries, { ...about, event: LOST, details: { chain: org_id, seq, hash } });
}

function* toldOf(queries: Queries): Steps<Anchor[]> {
  const rows = yield* readableRecords(queries, { org_id: null, event: LOST, order: "desc" }, MAX_TOLD);
  return rows.map(({ details }) => {
    const { chain, seq, hash } = JSON.parse(details) as { chain: string | null; seq: number; hash: string };
    return { org_id: chain, seq, hash };
  });
}

/** Whether the record of the anchor is absent or differs. A purged record is not missing. */
function isLost(queries: Queries, orgKey: ChainKey, { seq, hash }: Pick<Anchor, "seq" | "hash">): boolean {
  const start = chainStart(queries, orgKey);
  if (start && seq <= start.seq) return seq === start.seq && hash !== start.hash;
  return hashAt(queries, orgKey, seq) !== hash;
}

/** The first broken record of a chain with a lost anchor: the first missing one if the chain ends before the anchor. */
function brokenAt(queries: Queries, orgKey: ChainKey, { seq }: Pick<Anchor, "seq">): number {
  return Math.min(seq, (chainHead(queries, orgKey)?.seq ?? 0) + 1);
}
