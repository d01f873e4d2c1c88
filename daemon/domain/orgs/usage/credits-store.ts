/** Owns the SQL of credits. */
import { eq, sql } from "drizzle-orm";
import type { OrgId } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import { type CreditRow, orgCredits } from "./table.ts";

/** Of an organization of which nothing is written it is nothing. */
export function getCredits(queries: Queries, orgId: OrgId): CreditRow {
  const row = queries.select().from(orgCredits).where(eq(orgCredits.org_id, orgId)).get();
  return row ?? { org_id: orgId, used_micro: 0, granted: null, exhausted_at: null };
}

export function putCredits(queries: Queries, row: CreditRow): void {
  queries.insert(orgCredits).values(row).onConflictDoUpdate({ target: orgCredits.org_id, set: row }).run();
}

export function addUsed(queries: Queries, orgId: OrgId, micro: number): void {
  const row = { org_id: orgId, used_micro: micro, granted: null, exhausted_at: null };
  const set = { used_micro: sql`${orgCredits.used_micro} + ${micro}` };
  queries.insert(orgCredits).values(row).onConflictDoUpdate({ target: orgCredits.org_id, set }).run();
}
