/** Owns the SQL of public keys for SSH. */
import { and, asc, count, eq, gt, isNull, or, type SQL, sql } from "drizzle-orm";
import { now } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import { type KeyRow, orgs, type SshKeyRow, sshKeys } from "./table.ts";

export function insertSshKey(queries: Queries, row: SshKeyRow): void {
  queries.insert(sshKeys).values(row).run();
}

export function listSshKeys(queries: Queries, orgId: SshKeyRow["org_id"]): SshKeyRow[] {
  return queries.select().from(sshKeys).where(eq(sshKeys.org_id, orgId)).orderBy(asc(sshKeys.ssh_key_id)).all();
}

export function countSshKeys(queries: Queries, orgId: SshKeyRow["org_id"]): number {
  return queries.select({ keys: count() }).from(sshKeys).where(eq(sshKeys.org_id, orgId)).get()?.keys ?? 0;
}

export function deleteSshKey(queries: Queries, orgId: SshKeyRow["org_id"], id: string): SshKeyRow | undefined {
  return queries
    .delete(sshKeys)
    .where(and(eq(sshKeys.org_id, orgId), eq(sshKeys.ssh_key_id, id as SshKeyRow["ssh_key_id"])))
    .returning()
    .get();
}

/** Those that keys of one line have added, the oldest first. */
export function deleteSshKeysBy(queries: Queries, line: readonly Pick<KeyRow, "key_id">[]): SshKeyRow[] {
  return deleteSshKeysIn(queries, idsOf(line));
}

/** Those that keys have added whose ids a query finds, the oldest first. */
export function deleteSshKeysIn(queries: Queries, keyIds: SQL): SshKeyRow[] {
  const deleted = queries.delete(sshKeys).where(isAddedBy(keyIds)).returning().all();
  return deleted.sort((one, other) => (one.ssh_key_id < other.ssh_key_id ? -1 : 1));
}

export function deleteSshKeysOf(queries: Queries, orgId: SshKeyRow["org_id"]): void {
  queries.delete(sshKeys).where(eq(sshKeys.org_id, orgId)).run();
}

/** They end at `until` at the latest. */
export function limitSshKeysBy(queries: Queries, line: readonly Pick<KeyRow, "key_id">[], until: string): void {
  const isLonger = or(isNull(sshKeys.expires_at), gt(sshKeys.expires_at, until));
  queries
    .update(sshKeys)
    .set({ expires_at: until })
    .where(and(isAddedBy(idsOf(line)), isLonger))
    .run();
}

/** Said as one value: a line may have more keys than a statement may have. */
const idsOf = (line: readonly Pick<KeyRow, "key_id">[]): SQL =>
  sql`(SELECT value FROM json_each(${JSON.stringify(line.map(({ key_id }) => key_id))}))`;

const isAddedBy = (keyIds: SQL) => and(eq(sshKeys.created_by_type, "key"), sql`${sshKeys.created_by_id} IN ${keyIds}`);

const isCurrent = () => or(isNull(sshKeys.expires_at), gt(sshKeys.expires_at, now()));

/** Every organization's key of this fingerprint, the oldest first. */
export function findSshKeys(queries: Queries, fingerprint: string) {
  return queries
    .select({ key: sshKeys, plan: orgs.plan })
    .from(sshKeys)
    .innerJoin(orgs, eq(orgs.org_id, sshKeys.org_id))
    .where(and(eq(sshKeys.fingerprint, fingerprint), isCurrent()))
    .orderBy(asc(sshKeys.ssh_key_id))
    .all();
}

export function isSshKeyOf(queries: Queries, orgId: SshKeyRow["org_id"], id: string): boolean {
  const where = and(eq(sshKeys.org_id, orgId), eq(sshKeys.ssh_key_id, id as SshKeyRow["ssh_key_id"]));
  return queries.select({ id: sshKeys.ssh_key_id }).from(sshKeys).where(where).get() !== undefined;
}

export function isSshKey(queries: Queries, id: string): boolean {
  const where = and(eq(sshKeys.ssh_key_id, id as SshKeyRow["ssh_key_id"]), isCurrent());
  return queries.select({ id: sshKeys.ssh_key_id }).from(sshKeys).where(where).get() !== undefined;
}
