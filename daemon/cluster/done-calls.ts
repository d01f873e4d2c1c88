/**
 * Owns what hosts know of each other's calls with an Idempotency-Key: that one changed what they share is noted with the change, in the
 * same round, and by whom. So the same call at another host is led to its answer, and none is carried out twice.
 */
import { and, eq, lt } from "drizzle-orm";
import type { Queries } from "../db/client.ts";
import { doneCalls } from "./table.ts";

/** What tells a call from others. */
export interface NamedCall {
  key_id: string;
  method: string;
  path: string;
  idempotency_key: string;
}

/** The host that has done it; null: nobody had, and it is noted that this one does. Within a change. */
export function noteCall(queries: Queries, call: NamedCall, host_id: string, done_at: string): string | null {
  const { key_id, method, path, idempotency_key } = call;
  const isIt = and(
    ...[eq(doneCalls.key_id, key_id), eq(doneCalls.method, method)],
    ...[eq(doneCalls.path, path), eq(doneCalls.idempotency_key, idempotency_key)],
  );
  const done = queries.select({ host_id: doneCalls.host_id }).from(doneCalls).where(isIt).get();
  if (done) return done.host_id;
  queries.insert(doneCalls).values({ key_id, method, path, idempotency_key, host_id, done_at }).run();
  return null;
}

/** Forgets what this host noted before a moment, when it has the answers no more. Within a change. */
export function forgetCalls(queries: Queries, hostId: string, before: string): void {
  queries
    .delete(doneCalls)
    .where(and(eq(doneCalls.host_id, hostId), lt(doneCalls.done_at, before)))
    .run();
}

export function hasCallsBefore(queries: Queries, hostId: string, before: string): boolean {
  const old = and(eq(doneCalls.host_id, hostId), lt(doneCalls.done_at, before));
  return queries.select({ path: doneCalls.path }).from(doneCalls).where(old).limit(1).get() !== undefined;
}
