/**
 * Ledger of credits: each effect is one row with its reason and a unique name, so that it is entered only once. Spending is one row per
 * day. The rows of an organization add up to its grants in addition to the plan's, less its consumption.
 */
import { and, desc, eq, lt, sql } from "drizzle-orm";
import type { LedgerEntry } from "../../../../shared/api/people/credits.ts";
import { newId, type OrgId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import type { Queries } from "../../../db/client.ts";
import { MICRO } from "./prices.ts";
import { creditLedger, type LedgerRow } from "./table.ts";

export type NewEntry = Pick<LedgerRow, "org_id" | "kind" | "amount_micro" | "reason" | "effect">;

/** Within a transaction. Returns false if the effect is already recorded. */
export function enter(queries: Queries, entry: NewEntry): boolean {
  const row: LedgerRow = { entry_id: newId("cre"), at: now(), ...entry };
  return queries.insert(creditLedger).values(row).onConflictDoNothing().returning().all().length === 1;
}

/** Within a transaction: adds to the spending of the day. */
export function enterSpent(queries: Queries, org_id: OrgId, micro: number): void {
  const at = now();
  const effect = `spend:${at.slice(0, 10)}`;
  const row: LedgerRow = {
    entry_id: newId("cre"),
    at,
    org_id,
    kind: "spend",
    amount_micro: -micro,
    reason: "use",
    effect,
  };
  const set = { amount_micro: sql`${creditLedger.amount_micro} - ${micro}` };
  queries
    .insert(creditLedger)
    .values(row)
    .onConflictDoUpdate({ target: [creditLedger.org_id, creditLedger.effect], set })
    .run();
}

export function isEntryOf(queries: Queries, orgId: OrgId, id: string): boolean {
  const condition = and(eq(creditLedger.org_id, orgId), eq(creditLedger.entry_id, id as LedgerRow["entry_id"]));
  return queries.select({ id: creditLedger.entry_id }).from(creditLedger).where(condition).get() !== undefined;
}

/** Newest first, older than `before`. */
export function listEntries(queries: Queries, orgId: OrgId, before: string | null, limit: number): LedgerRow[] {
  const older = before === null ? undefined : lt(creditLedger.entry_id, before);
  const condition = and(eq(creditLedger.org_id, orgId), older);
  return queries.select().from(creditLedger).where(condition).orderBy(desc(creditLedger.entry_id)).limit(limit).all();
}

export function toEntry({ entry_id, at, kind, amount_micro, reason }: LedgerRow): LedgerEntry {
  return { entry_id, at, kind, amount: amount_micro / MICRO, reason };
}
