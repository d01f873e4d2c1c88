/** SQL of organizations and keys. */
import { and, count, desc, eq, gt, inArray, isNotNull, isNull, lt, lte, ne, or, type SQL, sql } from "drizzle-orm";
import type { Scope } from "../../../shared/api/contract.ts";
import { newId, ulidFrom } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { preparedBy, type Queries, rawQuery, rawStatement } from "../../db/client.ts";
import { RowCache } from "../../db/row-cache.ts";
import { apiKeys, type KeyRow, type NewOrgRow, type OrgRow, orgs } from "./table.ts";

const known = new RowCache<OrgRow>();

export function insertOrg(queries: Queries, row: NewOrgRow): void {
  known.forget(queries);
  queries.insert(orgs).values(row).run();
}

/** Organizations that have not ended. */
export function listOrgs(queries: Queries): OrgRow[] {
  return queries.select().from(orgs).where(isNull(orgs.ended_at)).orderBy(orgs.org_id).all();
}

/** All organizations, also ended ones. */
export function listEveryOrg(queries: Queries): OrgRow[] {
  return queries.select().from(orgs).orderBy(orgs.org_id).all();
}

/** Organizations that are ending and not ended; the condition is that of the index. */
export function listEndingOrgs(queries: Queries): OrgRow[] {
  return queries
    .select()
    .from(orgs)
    .where(and(isNotNull(orgs.ending_at), isNull(orgs.ended_at)))
    .all();
}

export function getOrg(queries: Queries, orgId: OrgRow["org_id"]): OrgRow | undefined {
  return queries.select().from(orgs).where(eq(orgs.org_id, orgId)).get();
}

/** The same from a cache; outside of transactions. */
export function knownOrg(queries: Queries, orgId: OrgRow["org_id"]): OrgRow | undefined {
  return known.get(queries, orgId, () => getOrg(queries, orgId));
}

export function changeOrg(queries: Queries, orgId: OrgRow["org_id"], change: Partial<OrgRow>): void {
  known.forget(queries);
  callers.forget(queries);
  queries.update(orgs).set(change).where(eq(orgs.org_id, orgId)).run();
}

export function insertKey(queries: Queries, row: KeyRow): void {
  callers.forget(queries);
  queries.insert(apiKeys).values(row).run();
}

export function listKeys(queries: Queries, orgId: OrgRow["org_id"]): KeyRow[] {
  return queries.select().from(apiKeys).where(eq(apiKeys.org_id, orgId)).orderBy(apiKeys.key_id).all();
}

/** The newest first, before `before`; without grants of applications. */
export function listKeysBefore(queries: Queries, orgId: OrgRow["org_id"], before: string | null, limit: number) {
  const older = before === null ? undefined : lt(apiKeys.key_id, before as KeyRow["key_id"]);
  const condition = and(eq(apiKeys.org_id, orgId), ne(apiKeys.kind, "oauth"), older);
  return queries.select().from(apiKeys).where(condition).orderBy(desc(apiKeys.key_id)).limit(limit).all();
}

/** Valid keys at a moment: without expiry, or with a later one. Each is counted with the index, which has no other keys. */
export function countKeys(queries: Queries, orgId: OrgRow["org_id"], at: string): number {
  const isOpen = and(eq(apiKeys.org_id, orgId), isNull(apiKeys.revoked_at));
  const ends = [isNull(apiKeys.expires_at), gt(apiKeys.expires_at, at)];
  const counts = ends.map((end) => queries.select({ keys: count() }).from(apiKeys).where(and(isOpen, end)).get());
  return counts.reduce((sum, entry) => sum + (entry?.keys ?? 0), 0);
}

/** Number of keys made since a moment, ended ones included; counts no more than `most`. */
export function countKeysSince(queries: Queries, orgId: OrgRow["org_id"], sinceMs: number, most: number): number {
  const first = newId("kid", ulidFrom(sinceMs, new Uint8Array(0)));
  const made = queries
    .select({ key_id: apiKeys.key_id })
    .from(apiKeys)
    .where(and(eq(apiKeys.org_id, orgId), gt(apiKeys.key_id, first)))
    .limit(most)
    .as("made");
  return queries.select({ keys: count() }).from(made).get()?.keys ?? 0;
}

export function getKey(queries: Queries, keyId: string): KeyRow | undefined {
  return queries
    .select()
    .from(apiKeys)
    .where(eq(apiKeys.key_id, keyId as KeyRow["key_id"]))
    .get();
}

/** The organization's key; another organization's key is not found, like one that never existed. */
export function getKeyOf(queries: Queries, orgId: OrgRow["org_id"], keyId: string): KeyRow | undefined {
  const named = eq(apiKeys.key_id, keyId as KeyRow["key_id"]);
  return queries
    .select()
    .from(apiKeys)
    .where(and(named, eq(apiKeys.org_id, orgId)))
    .get();
}

/**
 * Keys of one organization made by a person, by keys that the person has made, and so on. A query, since any number of them may have ended.
 * The + selects the index of makers: an organization has more keys than a maker.
 */
const madeBy = (orgId: OrgRow["org_id"], userId: string): SQL => sql`(
  WITH RECURSIVE made (key_id) AS (
    SELECT key_id FROM api_keys WHERE created_by_id = ${userId} AND +org_id = ${orgId}
    UNION
    SELECT api_keys.key_id FROM made CROSS JOIN api_keys
      ON api_keys.created_by_id = made.key_id AND +api_keys.org_id = ${orgId}
  )
  SELECT key_id FROM made)`;

/** Keys made by a person that have more scopes than the person may still give. Grants of applications are in oauth/made.ts. */
interface Beyond {
  org_id: OrgRow["org_id"];
  user_id: string;
  gives: readonly Scope[];
}

const isBeyond = ({ org_id, user_id, gives }: Beyond): SQL =>
  sql`kind <> 'oauth' AND key_id IN ${madeBy(org_id, user_id)} AND EXISTS (
    SELECT 1 FROM json_each(scopes) WHERE value NOT IN (SELECT value FROM json_each(${JSON.stringify(gives)})))`;

/** Ends all of them, valid or not. Returns the valid ones. */
export function endKeysBeyond(queries: Queries, beyond: Beyond, at: string): KeyRow[] {
  callers.forget(queries);
  const isOpen = isNull(apiKeys.revoked_at);
  const isGood = and(isOpen, or(isNull(apiKeys.expires_at), gt(apiKeys.expires_at, at)));
  const good = queries
    .select()
    .from(apiKeys)
    .where(and(isGood, isBeyond(beyond)))
    .all();
  queries
    .update(apiKeys)
    .set({ ended_with_maker: true, revoked_at: sql`coalesce(${apiKeys.revoked_at}, ${at})` })
    .where(and(or(isOpen, eq(apiKeys.ended_with_maker, false)), isBeyond(beyond)))
    .run();
  return good;
}

/** A person's grants to applications that are not revoked. */
export function grantsBy(queries: Queries, userId: string): KeyRow[] {
  const own = and(eq(apiKeys.created_by_id, userId), eq(apiKeys.kind, "oauth"));
  return queries
    .select()
    .from(apiKeys)
    .where(and(own, isNull(apiKeys.revoked_at)))
    .all();
}

/** Ids of a key's line: the key, and all keys that it was rotated from and into. */
export function lineOf(
  queries: Queries,
  { key_id: own, first_key_id }: Pick<KeyRow, "key_id" | "first_key_id">,
): Pick<KeyRow, "key_id">[] {
  const first = first_key_id ?? own;
  const { key_id } = apiKeys;
  const condition = or(eq(key_id, first), eq(apiKeys.first_key_id, first));
  return queries.select({ key_id }).from(apiKeys).where(condition).all();
}

/** Changes an existing key. */
export function changeKey(queries: Queries, keyId: KeyRow["key_id"], change: Partial<KeyRow>): KeyRow {
  callers.forget(queries);
  return queries.update(apiKeys).set(change).where(eq(apiKeys.key_id, keyId)).returning().get();
}

/** Revokes a key. `withMaker`: because its maker no longer has the right to it. */
export function endKey(queries: Queries, keyId: KeyRow["key_id"], { withMaker = false } = {}): KeyRow {
  return changeKey(queries, keyId, { revoked_at: now(), ...(withMaker ? { ended_with_maker: true } : {}) });
}

/** Revokes all valid keys of an organization; returns their number. */
export function revokeKeys(queries: Queries, orgId: OrgRow["org_id"], at: string): number {
  callers.forget(queries);
  const isOpen = or(isNull(apiKeys.expires_at), gt(apiKeys.expires_at, at));
  const open = and(eq(apiKeys.org_id, orgId), isNull(apiKeys.revoked_at), isOpen);
  return queries.update(apiKeys).set({ revoked_at: at }).where(open).returning({ id: apiKeys.key_id }).all().length;
}

/** Deletes at most `most` keys; returns their number. */
export function deleteKeys(queries: Queries, orgId: OrgRow["org_id"], most: number): number {
  callers.forget(queries);
  const own = eq(apiKeys.org_id, orgId);
  const some = queries.select({ key_id: apiKeys.key_id }).from(apiKeys).where(own).limit(most).all();
  const ids = some.map(({ key_id }) => key_id);
  queries.delete(apiKeys).where(inArray(apiKeys.key_id, ids)).run();
  return ids.length;
}

/** Time of a key's end and its id, in the order of the index. */
interface KeyEnd {
  ends_at: string;
  key_id: KeyRow["key_id"];
}

export const FIRST_END = { ends_at: "", key_id: "" as KeyRow["key_id"] };

/** The same expression as in the index. */
const ENDS_AT = "min(ifnull(revoked_at, '9'), ifnull(expires_at, '9'))";
const HAS_END = "kind = 'api' AND (revoked_at IS NOT NULL OR expires_at IS NOT NULL)";
/** No key of its line is valid, or ended after a moment, and no key that it has made exists. */
const IS_FREE = `NOT EXISTS (SELECT 1 FROM api_keys AS first WHERE first.key_id = ifnull(own.first_key_id, own.key_id)
      AND min(ifnull(first.revoked_at, '9'), ifnull(first.expires_at, '9')) >= ?1)
  AND NOT EXISTS (SELECT 1 FROM api_keys AS line WHERE line.first_key_id = ifnull(own.first_key_id, own.key_id)
      AND min(ifnull(line.revoked_at, '9'), ifnull(line.expires_at, '9')) >= ?1)
  AND NOT EXISTS (SELECT 1 FROM api_keys AS made WHERE made.created_by_id = own.key_id)`;

const endedAfter = preparedBy((queries) =>
  rawQuery<KeyEnd & { is_free: 0 | 1 }>(
    queries,
    `SELECT key_id, ${ENDS_AT} AS ends_at, ${IS_FREE} AS is_free FROM api_keys AS own
      WHERE ${HAS_END} AND ${ENDS_AT} < ?1 AND (${ENDS_AT}, key_id) > (?2, ?3) ORDER BY ${ENDS_AT}, key_id LIMIT ?4`,
  ),
);

/** API keys that ended before a moment, in order after the given one, each with a flag whether nothing needs it any more. */
export function endedKeysAfter(queries: Queries, { ends_at, key_id }: KeyEnd, before: string, most: number) {
  return endedAfter(queries)([before, ends_at, key_id, most]);
}

/** Removes the given keys, except keys still in use. Within a transaction. */
export function removeEndedKeys(queries: Queries, ids: readonly KeyRow["key_id"][], before: string): void {
  callers.forget(queries);
  const isOne = "key_id IN (SELECT value FROM json_each(?2))";
  const statement = `DELETE FROM api_keys AS own WHERE ${isOne} AND ${HAS_END} AND ${ENDS_AT} < ?1 AND ${IS_FREE}`;
  rawStatement(queries, statement)([before, JSON.stringify(ids)]);
}

/** Columns that a request needs of the key that it presents. */
export type CallerRow = { [Column in "org_id" | "plan"]: OrgRow[Column] | null } & Pick<
  KeyRow,
  | "key_id"
  | "kind"
  | "name"
  | "scopes"
  | "room_ids"
  | "agent_id"
  | "expires_at"
  | "revoked_at"
  | "first_key_id"
  | "last_used_at"
>;
const callers = new RowCache<CallerRow>();

/** A key with its organization. */
function selectCaller(queries: Queries) {
  const { key_id, kind, name, scopes, room_ids, agent_id, expires_at, revoked_at, first_key_id } = apiKeys;
  const { last_used_at } = apiKeys;
  const { org_id, plan } = orgs;
  const ofKey = { key_id, kind, name, scopes, room_ids, agent_id, expires_at, revoked_at, first_key_id, last_used_at };
  return queries
    .select({ org_id, plan, ...ofKey })
    .from(apiKeys)
    .leftJoin(orgs, eq(org_id, apiKeys.org_id));
}

/** Looks up a key by its hash. */
export function prepareKeyLookup(queries: Queries) {
  const statement = selectCaller(queries)
    .where(eq(apiKeys.key_sha256, sql.placeholder("key_sha256")))
    .prepare();
  return (key_sha256: string) => callers.get(queries, key_sha256, () => statement.get({ key_sha256 }));
}

/** The same by its id. */
export function prepareKeyLookupById(queries: Queries) {
  const statement = selectCaller(queries)
    .where(eq(apiKeys.key_id, sql.placeholder("key_id")))
    .prepare();
  return (key_id: string) => callers.get(queries, key_id, () => statement.get({ key_id }));
}

/** Looks up the end of a key's validity, by its id. */
export function prepareKeyTerm(queries: Queries) {
  const { expires_at, revoked_at } = apiKeys;
  return queries
    .select({ expires_at, revoked_at })
    .from(apiKeys)
    .where(eq(apiKeys.key_id, sql.placeholder("key_id")))
    .prepare();
}

/** Name of a key, valid or not; null if it does not exist. */
export function keyName(queries: Queries, keyId: string): string | null {
  const named = eq(apiKeys.key_id, keyId as KeyRow["key_id"]);
  return queries.select({ name: apiKeys.name }).from(apiKeys).where(named).get()?.name ?? null;
}

/** Writes the last use of a key, unless the stored use is later than `unless_after`. */
export function prepareUse(queries: Queries) {
  const { key_id, last_used_at } = apiKeys;
  const isOlder = or(isNull(last_used_at), lte(last_used_at, sql.placeholder("unless_after")));
  return queries
    .update(apiKeys)
    .set({ last_used_at: sql`${sql.placeholder("last_used_at")}` })
    .where(and(eq(key_id, sql.placeholder("key_id")), isOlder))
    .prepare();
}
