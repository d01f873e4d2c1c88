/** SQL of billing. */
import { and, asc, desc, eq, inArray, isNotNull, isNull, lt } from "drizzle-orm";
import type { KeyId, OrgId } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import {
  type BillingEventRow,
  billingCheckouts,
  billingCustomers,
  billingEvents,
  type CheckoutRow,
  type CustomerRow,
} from "./table.ts";

export function getCustomer(queries: Queries, orgId: OrgId): CustomerRow | undefined {
  return queries.select().from(billingCustomers).where(eq(billingCustomers.org_id, orgId)).get();
}

export function customerById(queries: Queries, customerId: string): CustomerRow | undefined {
  return queries.select().from(billingCustomers).where(eq(billingCustomers.customer_id, customerId)).get();
}

export function listCustomers(queries: Queries): CustomerRow[] {
  return queries.select().from(billingCustomers).all();
}

/** The organization's customer: an existing one, or this one. */
export function addCustomer(queries: Queries, row: CustomerRow): CustomerRow {
  queries.insert(billingCustomers).values(row).onConflictDoNothing().run();
  return getCustomer(queries, row.org_id) ?? row;
}

export function putCustomer(queries: Queries, row: CustomerRow): void {
  queries.insert(billingCustomers).values(row).onConflictDoUpdate({ target: billingCustomers.org_id, set: row }).run();
}

/** Adds an event; returns false if it was stored before. */
export function addEvent(queries: Queries, row: BillingEventRow): boolean {
  return queries.insert(billingEvents).values(row).onConflictDoNothing().returning().all().length === 1;
}

/** The oldest unprocessed notifications. */
export function openEvents(queries: Queries, most: number): BillingEventRow[] {
  const open = isNull(billingEvents.done_at);
  return queries.select().from(billingEvents).where(open).orderBy(asc(billingEvents.received_at)).limit(most).all();
}

export function endEvents(queries: Queries, eventIds: readonly string[], at: string): void {
  queries
    .update(billingEvents)
    .set({ done_at: at })
    .where(inArray(billingEvents.event_id, [...eventIds]))
    .run();
}

/** Deletes notifications processed before a moment: they are not sent again. */
export function dropEvents(queries: Queries, before: string): void {
  queries
    .delete(billingEvents)
    .where(and(isNotNull(billingEvents.done_at), lt(billingEvents.done_at, before)))
    .run();
}

/** Retains the newest `keep` checkouts of an organization that issued no key, and all that issued one. */
export function addCheckout(queries: Queries, row: CheckoutRow, keep: number): void {
  queries.insert(billingCheckouts).values(row).onConflictDoNothing().run();
  const unused = and(eq(billingCheckouts.org_id, row.org_id), isNull(billingCheckouts.key_id));
  const all = queries.select().from(billingCheckouts).where(unused).orderBy(desc(billingCheckouts.created_at)).all();
  for (const { checkout_id } of all.slice(keep)) {
    queries.delete(billingCheckouts).where(eq(billingCheckouts.checkout_id, checkout_id)).run();
  }
}

/** The checkout that was started last. */
export function lastCheckout(queries: Queries, orgId: OrgId): CheckoutRow | undefined {
  const own = eq(billingCheckouts.org_id, orgId);
  return queries.select().from(billingCheckouts).where(own).orderBy(desc(billingCheckouts.created_at)).get();
}

export function getCheckout(queries: Queries, checkoutId: string): CheckoutRow | undefined {
  return queries.select().from(billingCheckouts).where(eq(billingCheckouts.checkout_id, checkoutId)).get();
}

/** Returns whether the key is the first of its checkout. */
export function takeKey(queries: Queries, checkoutId: string, keyId: KeyId): boolean {
  const free = and(eq(billingCheckouts.checkout_id, checkoutId), isNull(billingCheckouts.key_id));
  return queries.update(billingCheckouts).set({ key_id: keyId }).where(free).returning().all().length === 1;
}
