/** Owns checking hash chains: the calls for an organization's own, and what the operator asks of all of them. */
import { auditVerify, orgAuditVerify } from "../../../shared/api/audit.ts";
import type { AnchorStore } from "../../core/anchor-store.ts";
import { type Bound, bind, boundTo, type Caller } from "../../core/operation.ts";
import type { Queries } from "../../db/client.ts";
import { withAnchors } from "./anchored.ts";
import { ChainCheck, type Known, type Verdict } from "./chain.ts";
import { chainHead } from "./chain-head.ts";
import { type ChainKey, chainKey } from "./chain-key.ts";
import type { AuditDeps } from "./deps.ts";
import { type AuditedRoom, findRoom } from "./find.ts";
import { chainRecords, chainStart, listAudit } from "./rows.ts";
import { walkOf } from "./scan.ts";

/** A verdict, and what it could not look at. */
export type Looked = Verdict & { warnings?: string[] };

/** A millisecond or two of work; then others have their turn. */
const AT_ONCE = 100;

export function makeVerify(deps: AuditDeps): Bound[] {
  /** Of each organization one at a time: who asks meanwhile hears what that finds. */
  const underWay = new Map<string, Promise<Looked>>();
  const { anchors } = deps;
  const { queries } = deps.database;
  const together = async (name: string, check: () => Promise<Looked>): Promise<Looked> => {
    const verdict = underWay.get(name) ?? check().finally(() => underWay.delete(name));
    underWay.set(name, verdict);
    return await verdict;
  };
  const verify = (orgId: string) => together(orgId, () => verifyAnchored(queries, chainKey(orgId), anchors));
  const verifyOwn = ({ org_id }: Caller, { room_uid }: AuditedRoom) =>
    together(`${org_id} ${room_uid}`, () => verifyRoom(queries, org_id, room_uid));
  return [
    bind(orgAuditVerify, {
      find: (call, params) => deps.findOrg(call.caller, String(params.org_id)),
      run: async (_call, _input, orgId) => ({ outcome: "ok", body: await verify(orgId) }),
    }),
    bind(auditVerify, {
      find: (call, params) => findRoom(deps, call, params),
      run: async ({ caller }, _input, room) => ({
        outcome: "ok",
        body: verdictOf(await (boundTo(caller) ? verifyOwn(caller, room) : verify(caller.org_id))),
      }),
    }),
  ];
}

const verdictOf = ({ ok, from_seq, to_seq, broken_at }: Verdict): Verdict => ({ ok, from_seq, to_seq, broken_at });

const NOT_COMPARED = "The anchors of the audit were not read: records that were cut off at its end are not missed.";

/** Checks a chain, and compares it with its anchors where they can be read. */
export async function verifyAnchored(
  queries: Queries,
  orgKey: ChainKey,
  anchors: AnchorStore | null,
  witnessed?: Known["witnessed"],
): Promise<Looked> {
  const verdict = await verifyAudit(queries, orgKey, witnessed);
  if (!anchors) return verdict;
  try {
    return await withAnchors(queries, anchors, orgKey, verdict);
  } catch {
    return { ...verdict, warnings: [NOT_COMPARED] };
  }
}

/** Checks a chain, a part of it in each turn of the event loop. */
export async function verifyAudit(
  queries: Queries,
  orgKey: ChainKey,
  witnessed?: Known["witnessed"],
): Promise<Verdict> {
  for (;;) {
    const start = chainStart(queries, orgKey);
    // The head is read first: what is added meanwhile comes after it.
    const head = chainHead(queries, orgKey);
    const verdict = await walk(queries, orgKey, new ChainCheck({ start, head, ...(witnessed && { witnessed }) }));
    // Records that were to be looked at may have been purged meanwhile.
    if (verdict.ok || chainStart(queries, orgKey)?.seq === start?.seq) return verdict;
  }
}

/**
 * The chain from a room's first record to its last, for a key that is bound: how much is on record of the rest of the organization
 * is not for it.
 */
async function verifyRoom(queries: Queries, org_id: string, room_uid: string): Promise<Verdict> {
  const orgKey = chainKey(org_id);
  for (;;) {
    const purged = chainStart(queries, orgKey)?.seq;
    const [first] = listAudit(queries, { org_id, room_uid, order: "asc", limit: 1 });
    const [last] = listAudit(queries, { org_id, room_uid, order: "desc", limit: 1 });
    if (!first || !last) return { ok: true, from_seq: 0, to_seq: 0, broken_at: null };
    const start = { seq: first.seq - 1, hash: first.prev_hash };
    const verdict = await walk(
      queries,
      orgKey,
      new ChainCheck({ start, head: last, isStretch: true }),
      start.seq,
      last.seq,
    );
    if (verdict.ok || chainStart(queries, orgKey)?.seq === purged) return verdict;
  }
}

async function walk(
  queries: Queries,
  orgKey: ChainKey,
  check: ChainCheck,
  from = 0,
  to = Number.POSITIVE_INFINITY,
): Promise<Verdict> {
  const pieces = walkOf(orgKey);
  for (let after = from; ; ) {
    await pieces.turn();
    const rows = chainRecords(queries, orgKey, after, Math.min(AT_ONCE, to - after));
    if (!rows.every((row) => check.take(row)) || rows.length < AT_ONCE) return check.end();
    after = rows.at(-1)?.seq ?? after;
  }
}
