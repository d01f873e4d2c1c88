/** SQL of sign-up: requests that wait for the operator's approval, and addresses that received their credits. */
import { count, eq } from "drizzle-orm";
import type { Queries } from "../../../db/client.ts";
import { type SignupRequestRow, signupGrants, signupRequests } from "../table.ts";

export function addRequest(queries: Queries, row: SignupRequestRow): void {
  const { name, note, created_at } = row;
  const set = { name, note, created_at };
  queries.insert(signupRequests).values(row).onConflictDoUpdate({ target: signupRequests.email, set }).run();
}

export function getRequest(queries: Queries, email: string): SignupRequestRow | undefined {
  return queries.select().from(signupRequests).where(eq(signupRequests.email, email)).get();
}

/** The oldest first. */
export function listRequests(queries: Queries): SignupRequestRow[] {
  return queries.select().from(signupRequests).orderBy(signupRequests.created_at).all();
}

export function countRequests(queries: Queries): number {
  return queries.select({ requests: count() }).from(signupRequests).get()?.requests ?? 0;
}

/** Whether there was one. */
export function dropRequest(queries: Queries, email: string): boolean {
  return queries.delete(signupRequests).where(eq(signupRequests.email, email)).returning().all().length > 0;
}

/** Records the grant; returns false if the address has had one before. */
export function addGrant(queries: Queries, row: typeof signupGrants.$inferSelect): boolean {
  return queries.insert(signupGrants).values(row).onConflictDoNothing().returning().all().length === 1;
}
