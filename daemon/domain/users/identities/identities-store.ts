/** SQL of people's external accounts. */
import { and, eq } from "drizzle-orm";
import type { IdentityId, UserId } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import { type IdentityRow, identities } from "../table.ts";

export function insertIdentity(queries: Queries, row: IdentityRow): void {
  queries.insert(identities).values(row).run();
}

/** The oldest first. */
export function listIdentities(queries: Queries, userId: UserId): IdentityRow[] {
  const own = eq(identities.user_id, userId);
  return queries.select().from(identities).where(own).orderBy(identities.identity_id).all();
}

export function identityBySubject(queries: Queries, issuer: string, subject: string): IdentityRow | undefined {
  const condition = and(eq(identities.issuer, issuer), eq(identities.subject, subject));
  return queries.select().from(identities).where(condition).get();
}

export function changeIdentity(queries: Queries, identityId: IdentityId, change: Partial<IdentityRow>): void {
  queries.update(identities).set(change).where(eq(identities.identity_id, identityId)).run();
}

export function deleteIdentity(queries: Queries, identityId: IdentityId): void {
  queries.delete(identities).where(eq(identities.identity_id, identityId)).run();
}

export function dropIdentities(queries: Queries, userId: UserId): void {
  queries.delete(identities).where(eq(identities.user_id, userId)).run();
}
