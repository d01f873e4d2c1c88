/**
 * Tombstones of removed members and unlinked accounts: signing in with such an external account does not restore the membership. Only the
 * account's hash is stored. An invitation works as for any other person.
 */
import { createHash } from "node:crypto";
import { and, eq } from "drizzle-orm";
import type { OrgId, UserId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import type { Queries } from "../../../db/client.ts";
import { departed } from "../table.ts";
import { listIdentities } from "./identities-store.ts";

interface Subject {
  issuer: string;
  subject: string;
}

const hashOf = ({ issuer, subject }: Subject): string =>
  createHash("sha256")
    .update(JSON.stringify([issuer, subject]))
    .digest("hex");

/** A member that joined without an external account is identified by the address. */
export const byAddress = (email: string): Subject => ({ issuer: "mailto", subject: email });

/** Within a transaction: notes the departure for all identities that the person has linked, or for one. */
export function noteDeparted(queries: Queries, orgId: OrgId, userId: UserId, subject?: Subject): void {
  for (const each of subject ? [subject] : listIdentities(queries, userId)) {
    const row = { subject_sha256: hashOf(each), org_id: orgId, departed_at: now() };
    queries.insert(departed).values(row).onConflictDoNothing().run();
  }
}

export function hasDeparted(queries: Queries, orgId: OrgId, subject: Subject): boolean {
  const condition = and(eq(departed.subject_sha256, hashOf(subject)), eq(departed.org_id, orgId));
  return queries.select().from(departed).where(condition).get() !== undefined;
}
