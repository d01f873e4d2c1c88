/**
 * Tombstones of API keys that had ended when the directory removed them: id and hash, on each host that had the key. A directory that was set back
 * to when such a key was good has its removal again.
 */
import { sql } from "drizzle-orm";
import { now } from "../core/clock.ts";
import { parseJson } from "../core/json.ts";
import type { Queries } from "../db/client.ts";
import type { SharedRow, SharedRows } from "../db/shared-rows.ts";
import { endedKeys } from "./table.ts";

const KEYS = "api_keys";

interface Key {
  key_id: string;
  key_sha256: string;
  revoked_at: string | null;
  expires_at: string | null;
}

/** Notes the ended keys among rows that are about to be removed. Within that transaction. */
export function noteEndedKeys(queries: Queries, shared: SharedRows, rows: readonly SharedRow[]): void {
  for (const removed of rows) {
    const row = removed.tbl === KEYS && removed.row === null ? shared.read(removed) : null;
    if (row === null) continue;
    const { key_id, key_sha256, revoked_at, expires_at } = parseJson(Buffer.from(row)) as Key;
    if (revoked_at === null && (expires_at === null || expires_at > now())) continue;
    queries.insert(endedKeys).values({ key_id, key_sha256 }).onConflictDoNothing().run();
  }
}

/** Rows of the directory for keys that have ended and were removed here. */
export function endedKeysOf<R extends SharedRow>(queries: Queries, rows: readonly R[]): R[] {
  const keys = rows.filter(({ tbl, row }) => tbl === KEYS && row !== null);
  if (keys.length === 0) return [];
  const named = sql`json_array(${endedKeys.key_id})`;
  const isNamed = sql`${endedKeys.key_id} IN (
    SELECT json_extract(value, '$[0]') FROM json_each(${JSON.stringify(keys.map(({ key }) => key))}))`;
  const found = queries
    .select({ key: sql<string>`${named}` })
    .from(endedKeys)
    .where(isNamed)
    .all();
  const ended = new Set(found.map(({ key }) => key));
  return keys.filter(({ key }) => ended.has(key));
}
