/** SQL of public SSH keys. */
import { and, asc, count, eq, gt, isNull, ne, not, or } from "drizzle-orm";
import { now } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import { isKeyOver, type MakerRule } from "./made.ts";
import { orgs, type SshKeyRow, sshKeys } from "./table.ts";

export const SSH_KEY_RULE: MakerRule = { scope: "terminal", isPersonal: true };

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

export function deleteSshKeysOf(queries: Queries, orgId: SshKeyRow["org_id"]): void {
  queries.delete(sshKeys).where(eq(sshKeys.org_id, orgId)).run();
}

/** The maker is checked at each login: no call occurs when the last key of a line expires. */
const isCurrent = () => {
  const isMakerGood = or(ne(sshKeys.created_by_type, "key"), not(isKeyOver(sshKeys.created_by_id, SSH_KEY_RULE)));
  return and(or(isNull(sshKeys.expires_at), gt(sshKeys.expires_at, now())), isMakerGood);
};

/** All organizations' keys with this fingerprint, the oldest first. */
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
  const condition = and(eq(sshKeys.org_id, orgId), eq(sshKeys.ssh_key_id, id as SshKeyRow["ssh_key_id"]));
  return queries.select({ id: sshKeys.ssh_key_id }).from(sshKeys).where(condition).get() !== undefined;
}

export function isSshKey(queries: Queries, id: string): boolean {
  const condition = and(eq(sshKeys.ssh_key_id, id as SshKeyRow["ssh_key_id"]), isCurrent());
  return queries.select({ id: sshKeys.ssh_key_id }).from(sshKeys).where(condition).get() !== undefined;
}
