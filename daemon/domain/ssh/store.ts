/** SQL of short-lived passwords. An expired one counts as absent, and is deleted when another one is created. */
import { and, asc, eq, gt, lte } from "drizzle-orm";
import type { OrgId, SandboxId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import { sandboxesOfOrg } from "../sandboxes/index.ts";
import { type SshAccessRow, sshAccesses } from "./table.ts";

const { access_id, sandbox_id, token_sha256, expires_at } = sshAccesses;

export function insertAccess(queries: Queries, row: SshAccessRow): void {
  queries.delete(sshAccesses).where(lte(expires_at, now())).run();
  queries.insert(sshAccesses).values(row).run();
}

export function listAccesses(queries: Queries, sandboxId: string): SshAccessRow[] {
  const condition = and(eq(sandbox_id, sandboxId), gt(expires_at, now()));
  return queries.select().from(sshAccesses).where(condition).orderBy(asc(access_id)).all();
}

export function findAccessByToken(queries: Queries, tokenSha256: string): SshAccessRow | undefined {
  const condition = and(eq(token_sha256, tokenSha256), gt(expires_at, now()));
  return queries.select().from(sshAccesses).where(condition).get();
}

export function isAccess(queries: Queries, id: string): boolean {
  const condition = and(eq(access_id, id as SshAccessRow["access_id"]), gt(expires_at, now()));
  return queries.select({ access_id }).from(sshAccesses).where(condition).get() !== undefined;
}

/** The sandbox of an access if it is the organization's; a look-up of another organization's costs as much as that of an unknown one. */
export function locateAccess(queries: Queries, orgId: OrgId, id: string) {
  const own = sandboxesOfOrg(queries, orgId);
  return queries
    .select({ room_uid: own.room_uid, agent_id: own.agent_id })
    .from(sshAccesses)
    .innerJoin(own, eq(own.sandbox_id, sandbox_id))
    .where(and(eq(access_id, id as SshAccessRow["access_id"]), gt(expires_at, now())))
    .get();
}

export function deleteAccess(queries: Queries, sandboxId: string, id: string): boolean {
  const condition = and(eq(sandbox_id, sandboxId), eq(access_id, id as SshAccessRow["access_id"]));
  return queries.delete(sshAccesses).where(condition).returning({ access_id }).get() !== undefined;
}

/** Within a transaction: deletes the accesses of a removed sandbox. */
export function forgetAccesses(queries: Queries, sandboxId: SandboxId): void {
  queries.delete(sshAccesses).where(eq(sandbox_id, sandboxId)).run();
}
