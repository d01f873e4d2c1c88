/** SQL of passkeys. */
import { count, eq } from "drizzle-orm";
import type { PasskeyId, UserId } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import { type PasskeyRow, passkeys } from "../table.ts";

export function insertPasskey(queries: Queries, row: PasskeyRow): void {
  queries.insert(passkeys).values(row).run();
}

/** The oldest first. */
export function listPasskeys(queries: Queries, userId: UserId): PasskeyRow[] {
  const own = eq(passkeys.user_id, userId);
  return queries.select().from(passkeys).where(own).orderBy(passkeys.passkey_id).all();
}

export function passkeyByCredential(queries: Queries, credentialId: string): PasskeyRow | undefined {
  return queries.select().from(passkeys).where(eq(passkeys.credential_id, credentialId)).get();
}

export function changePasskey(queries: Queries, passkeyId: PasskeyId, change: Partial<PasskeyRow>): void {
  queries.update(passkeys).set(change).where(eq(passkeys.passkey_id, passkeyId)).run();
}

export function deletePasskey(queries: Queries, passkeyId: PasskeyId): void {
  queries.delete(passkeys).where(eq(passkeys.passkey_id, passkeyId)).run();
}

export function dropPasskeys(queries: Queries, userId: UserId): void {
  queries.delete(passkeys).where(eq(passkeys.user_id, userId)).run();
}

/** Counts by the name at which they are valid. */
export function countPasskeys(queries: Queries): { rp_id: string; passkeys: number }[] {
  return queries
    .select({ rp_id: passkeys.rp_id, passkeys: count() })
    .from(passkeys)
    .groupBy(passkeys.rp_id)
    .orderBy(passkeys.rp_id)
    .all();
}
