/**
 * The anchors of audit chains: heads of each host's chains, added periodically to an insert-only table of the database that hosts share. An
 * attacker who rewrites a host's own data cannot rewrite its earlier anchors. A host that was removed and joins again is another
 * incarnation, with its own chains.
 */
import type { Anchor, AnchorStore } from "../core/anchor-store.ts";
import type { Connections, Run } from "./connections.ts";
import { holds, type Member, type MembershipLock } from "./membership-lock.ts";
import { bringUp } from "./schema.ts";

const ASK_MS = 5_000;
const MAX_AT_ONCE = 500;

const OWN = "host_id = $1 AND incarnation = $2";
/** If two anchors of one record differ, the earlier one is kept. */
const ADD = `INSERT INTO roomd.audit_anchors (host_id, incarnation, org_id, seq, hash)
  SELECT $1, $2, org_id, seq, hash FROM json_to_recordset($3::json) AS given (org_id text, seq bigint, hash text)
  ON CONFLICT DO NOTHING`;
const AFTER = `SELECT org_id, seq, hash FROM roomd.audit_anchors
  WHERE ${OWN} AND org_id = $3 AND seq > $4 ORDER BY seq LIMIT $5`;
/** Skips from one chain to the next through the index: there are many more rows than chains. */
const LAST = `WITH RECURSIVE chains AS (
    (SELECT org_id FROM roomd.audit_anchors WHERE ${OWN} ORDER BY org_id LIMIT 1)
    UNION ALL
    SELECT (SELECT more.org_id FROM roomd.audit_anchors AS more
             WHERE ${OWN} AND more.org_id > chains.org_id ORDER BY more.org_id LIMIT 1)
      FROM chains WHERE chains.org_id IS NOT NULL)
  SELECT newest.* FROM chains, LATERAL (
    SELECT org_id, seq, hash FROM roomd.audit_anchors AS own
     WHERE ${OWN} AND own.org_id = chains.org_id ORDER BY seq DESC LIMIT 1) AS newest`;

export interface AnchorDeps {
  connections: Connections;
  member: Member;
  holder: MembershipLock;
}

export function makeAnchors({ connections, member, holder }: AnchorDeps): AnchorStore {
  const { host_id, incarnation, anchored_as } = member;
  // A restored host has a new incarnation and continues the chains of the previous one.
  const own = [host_id, anchored_as ?? incarnation];
  let isBroughtUp = false;
  const ask = <T>(work: (run: Run) => Promise<T>, deadlineMs: number) =>
    connections.transaction(async (run) => {
      // A database created by an older version may lack the table.
      if (!isBroughtUp) await bringUp(run);
      return await work(run);
    }, deadlineMs);
  const fetchAnchors = async (sql: string, values: readonly unknown[]): Promise<Anchor[]> => {
    const { rows } = await ask((run) => run(sql, values), ASK_MS);
    isBroughtUp = true;
    return rows.map(({ org_id, seq, hash }) => ({
      org_id: org_id === NONE ? null : String(org_id),
      seq: Number(seq),
      hash: String(hash),
    }));
  };
  return {
    add: async (anchors, deadlineMs) => {
      for (let at = 0; at < anchors.length; at += MAX_AT_ONCE) {
        const some = anchors.slice(at, at + MAX_AT_ONCE).map((each) => ({ ...each, org_id: each.org_id ?? NONE }));
        await ask(async (run) => {
          // A daemon on a copy of this host's data has different chains: it must not add anchors.
          if (!(await holds(run, member, holder))) throw new Error("this host is no longer a member");
          await run(ADD, [...own, JSON.stringify(some)]);
        }, deadlineMs);
        isBroughtUp = true;
      }
    },
    last: () => fetchAnchors(LAST, own),
    after: (orgId, seq, limit) => fetchAnchors(AFTER, [...own, orgId ?? NONE, seq, limit]),
  };
}

/** The chain of records that belong to no organization. */
const NONE = "";
