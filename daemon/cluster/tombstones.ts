/**
 * Tombstones of removed rows that granted access, on each host that had the row: table, key and creation time, and the hash of an API key.
 * A directory restored to a state before the removal has the row again; it is removed there once more (one-way.ts). A row created later
 * under the same key, such as the membership of a user who joined again, is not affected.
 */
import { lt, sql } from "drizzle-orm";
import { at, now, wallMs } from "../core/clock.ts";
import { parseJson } from "../core/json.ts";
import { preparedBy, type Queries, rawQuery } from "../db/client.ts";
import type { SharedRow, SharedRows } from "../db/shared-rows.ts";
import { tombstones } from "./table.ts";

/** Tables with rows that grant access or receive events until they are deleted. */
const GRANTING = new Set([
  "api_keys",
  "ssh_keys",
  "users",
  "memberships",
  "links",
  "identities",
  "passkeys",
  "browsers",
  "webhooks",
]);
/** Retention: no directory is restored from an older backup. */
const KEPT_MS = 365 * 86_400_000;
/** Number of expired tombstones deleted for each new one. */
const FEW = 4;

interface Removed {
  created_at: string;
  key_sha256?: string;
}

const removedOf = (row: string) => parseJson(Buffer.from(row)) as Removed;

const given = (name: string) => sql.placeholder(name);

const prepare = preparedBy((queries: Queries) => {
  const { tbl, key, removed_at } = tombstones;
  const expired = queries
    .select({ tbl, key })
    .from(tombstones)
    .where(lt(removed_at, given("until")));
  return {
    note: queries
      .insert(tombstones)
      .values({
        ...{ tbl: given("tbl"), key: given("key"), created_at: given("created_at") },
        ...{ key_sha256: given("key_sha256"), removed_at: given("removed_at") },
      })
      .onConflictDoUpdate({
        target: [tbl, key],
        set: {
          created_at: sql`excluded.created_at`,
          key_sha256: sql`excluded.key_sha256`,
          removed_at: sql`excluded.removed_at`,
        },
      })
      .prepare(),
    forget: queries
      .delete(tombstones)
      .where(sql`(${tbl}, ${key}) IN ${expired.limit(given("most"))}`)
      .prepare(),
  };
});

/** Notes tombstones of rows about to be removed. Within the transaction that removes them. */
export function noteRemoved(queries: Queries, shared: SharedRows, rows: readonly SharedRow[]): void {
  let count = 0;
  for (const { tbl, key, row } of rows) {
    const removed = row === null && GRANTING.has(tbl) ? shared.read({ tbl, key }) : null;
    if (removed === null) continue;
    const { created_at, key_sha256 = null } = removedOf(removed);
    prepare(queries).note.run({ tbl, key, created_at, key_sha256, removed_at: now() });
    count++;
  }
  if (count > 0) prepare(queries).forget.run({ until: at(wallMs() - KEPT_MS), most: count * FEW });
}

/** The given rows that have a tombstone on this host. */
export function removedAmong<R extends SharedRow>(queries: Queries, rows: readonly R[]): Set<R> {
  const present = rows.filter(({ tbl, row }) => row !== null && GRANTING.has(tbl));
  if (present.length === 0) return new Set();
  const named = JSON.stringify(present.map(({ tbl, key }) => [tbl, key]));
  const found = rawQuery<{ tbl: string; key: string; created_at: string }>(
    queries,
    `SELECT tombstones.tbl, tombstones.key, created_at FROM json_each(?1) AS named
       JOIN tombstones ON tombstones.tbl = named.value ->> 0 AND tombstones.key = named.value ->> 1`,
  )([named]);
  const removed = new Map(found.map(({ tbl, key, created_at }) => [`${tbl} ${key}`, created_at]));
  const isRemoved = ({ tbl, key, row }: R) => {
    const until = removed.get(`${tbl} ${key}`);
    return until !== undefined && row !== null && removedOf(row).created_at <= until;
  };
  return new Set(present.filter(isRemoved));
}
