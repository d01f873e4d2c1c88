/** SQL of credits. */
import { eq, isNotNull, sql } from "drizzle-orm";
import type { OrgId } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import { type CreditRow, creditGrants, orgCredits, usageOpen } from "./table.ts";

/** Zero for an organization without a row. `used_micro` is its consumption on this host. */
export function getCredits(queries: Queries, orgId: OrgId): CreditRow {
  const row = queries.select().from(orgCredits).where(eq(orgCredits.org_id, orgId)).get();
  const grant = queries.select().from(creditGrants).where(eq(creditGrants.org_id, orgId)).get();
  return { ...(row ?? { org_id: orgId, used_micro: 0, exhausted_at: null }), granted: grant?.granted ?? null };
}

/** Credits used on this host by each organization with any use, in millionths. */
export function usedCredits(queries: Queries): Map<OrgId, number> {
  const rows = queries.select({ org_id: orgCredits.org_id, used: orgCredits.used_micro }).from(orgCredits).all();
  return new Map(rows.filter(({ used }) => used > 0).map(({ org_id, used }) => [org_id, used]));
}

/** Null: removes the grant. The value is the same on all hosts. */
export function putGranted(queries: Queries, org_id: OrgId, granted: number | null): void {
  const isIt = eq(creditGrants.org_id, org_id);
  if (granted === null) queries.delete(creditGrants).where(isIt).run();
  else {
    const row = { org_id, granted };
    queries.insert(creditGrants).values(row).onConflictDoUpdate({ target: creditGrants.org_id, set: row }).run();
  }
}

/** Stores the time since which no credits remain; null: credits remain. */
export function putExhausted(queries: Queries, org_id: OrgId, exhausted_at: string | null): void {
  const set = { exhausted_at };
  queries
    .insert(orgCredits)
    .values({ org_id, used_micro: 0, ...set })
    .onConflictDoUpdate({ target: orgCredits.org_id, set })
    .run();
}

/** Organizations that are consuming credits, or have exhausted them. */
export function orgsToWatch(queries: Queries): OrgId[] {
  const open = queries.selectDistinct({ org_id: usageOpen.org_id }).from(usageOpen).all();
  const exhausted = queries.select({ org_id: orgCredits.org_id }).from(orgCredits);
  const all = [...open, ...exhausted.where(isNotNull(orgCredits.exhausted_at)).all()];
  return [...new Set(all.map(({ org_id }) => org_id))];
}

export function addUsed(queries: Queries, orgId: OrgId, micro: number): void {
  const row = { org_id: orgId, used_micro: micro, exhausted_at: null };
  const set = { used_micro: sql`${orgCredits.used_micro} + ${micro}` };
  queries.insert(orgCredits).values(row).onConflictDoUpdate({ target: orgCredits.org_id, set }).run();
}
