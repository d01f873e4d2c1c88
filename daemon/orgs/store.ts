/** Owns the SQL of organizations and keys. */
import { and, eq, isNull, sql } from "drizzle-orm";
import type { Queries } from "../db/client.ts";
import { apiKeys, type KeyRow, type OrgRow, orgs } from "./table.ts";

export function insertOrg(queries: Queries, row: OrgRow): void {
  queries.insert(orgs).values(row).run();
}

export function listOrgs(queries: Queries): OrgRow[] {
  return queries.select().from(orgs).orderBy(orgs.org_id).all();
}

export function getOrg(queries: Queries, orgId: OrgRow["org_id"]): OrgRow | undefined {
  return queries.select().from(orgs).where(eq(orgs.org_id, orgId)).get();
}

export function insertKey(queries: Queries, row: KeyRow): void {
  queries.insert(apiKeys).values(row).run();
}

export function listKeys(queries: Queries, orgId: OrgRow["org_id"]): KeyRow[] {
  return queries.select().from(apiKeys).where(eq(apiKeys.org_id, orgId)).orderBy(apiKeys.key_id).all();
}

/** Looks a key up by its hash, with its organization; prepared, because every request asks. */
export function prepareKeyLookup(queries: Queries) {
  const { key_id, kind, name, scopes, room_ids, agent_id, expires_at, revoked_at } = apiKeys;
  const { org_id, plan } = orgs;
  return queries
    .select({ org_id, plan, key_id, kind, name, scopes, room_ids, agent_id, expires_at, revoked_at })
    .from(apiKeys)
    .innerJoin(orgs, eq(org_id, apiKeys.org_id))
    .where(eq(apiKeys.key_sha256, sql.placeholder("key_sha256")))
    .prepare();
}

/** Looks up until when a key is good, by its id. */
export function prepareKeyTerm(queries: Queries) {
  const { expires_at, revoked_at } = apiKeys;
  return queries
    .select({ expires_at, revoked_at })
    .from(apiKeys)
    .where(eq(apiKeys.key_id, sql.placeholder("key_id")))
    .prepare();
}

/** Returns whose key it was; undefined when there is none that was not revoked before. */
export function revokeKey(queries: Queries, keyId: KeyRow["key_id"], revokedAt: string) {
  return queries
    .update(apiKeys)
    .set({ revoked_at: revokedAt })
    .where(and(eq(apiKeys.key_id, keyId), isNull(apiKeys.revoked_at)))
    .returning({ org_id: apiKeys.org_id })
    .get();
}
