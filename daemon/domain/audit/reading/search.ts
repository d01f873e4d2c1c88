/** Finds the record of a thing that only the audit still has, the newest first. */
import { and, eq, gte, inArray, lt, sql } from "drizzle-orm";
import type { AuditRecord } from "../../../../shared/api/audit.ts";
import type { Steps } from "../../../core/loop/steps.ts";
import type { Queries } from "../../../db/client.ts";
import { chainKey } from "../chain/chain-key.ts";
import { chainEnd, matching, toRecord } from "../rows.ts";
import { audit } from "../table.ts";
import { type Scan, stretches } from "./scan.ts";

/** Number of records of the chain that are searched for a thing that may be in any of them. */
const MAX_SEARCHED = 20_000;

/** The limits of a bound caller; null: none. */
export interface Within {
  org_id: string;
  room_uids: readonly string[] | null;
  agent_id: string | null;
}

/** By one of these. */
export type RecordKey =
  | { audit_id: string }
  | { request_id: string }
  | { exec_id: string }
  | { terminal_id: string }
  | { recording_id: string };

/** Event prefix of the records with the id of this kind in their details. */
const FAMILY: Record<string, string> = { exec_id: "exec", terminal_id: "exec", recording_id: "screen" };

/** One step per stretch of the chain. */
export function* searchRecord(queries: Queries, within: Within, key: RecordKey): Steps<AuditRecord | null> {
  const { org_id, room_uids, agent_id } = within;
  const [[name, id]] = Object.entries(key) as [[string, string]];
  const isNamed = name === "audit_id" || name === "request_id";
  const scan: Scan = { org_id, order: "desc", ...(isNamed ? { [name]: id } : {}) };
  const detail = and(
    gte(audit.event, `${FAMILY[name]}.`),
    lt(audit.event, `${FAMILY[name]}/`),
    eq(audit.outcome, "success"),
    sql`json_extract(${audit.details}, ${`$.${name}`}) = ${id}`,
  );
  const head = chainEnd(queries, chainKey(org_id))?.seq ?? 0;
  for (const { queries: part, after, last } of stretches(queries, { org_id, order: "desc" })) {
    const found = part
      .select()
      .from(audit)
      .where(
        and(
          matching({ ...scan, after, last }),
          room_uids === null ? undefined : inArray(audit.room_uid, [...room_uids]),
          agent_id === null ? undefined : eq(audit.agent_id, agent_id),
          isNamed ? undefined : detail,
        ),
      )
      .orderBy(sql`${audit.seq} DESC`)
      .limit(1)
      .get();
    if (found) return toRecord(found);
    if (!isNamed && head - (last ?? 0) >= MAX_SEARCHED) break;
    yield;
  }
  return null;
}
