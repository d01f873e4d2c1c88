/**
 * Owns Idempotency-Key: the first call with a key is carried out and its answer kept for 24 hours,
 * the same call again gets that answer. Scope is API key, method and path.
 */
import { and, eq, lt, sql } from "drizzle-orm";
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { at, now } from "../core/clock.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Queries } from "../db/client.ts";
import type { Database } from "../db/transact.ts";

const KEPT_MS = 24 * 3600 * 1000;

export const idempotency = sqliteTable(
  "idempotency",
  {
    key_id: text().notNull(),
    method: text().notNull(),
    path: text().notNull(),
    idempotency_key: text().notNull(),
    body_sha256: text().notNull(),
    status: integer(),
    reply: text(),
    created_at: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.key_id, table.method, table.path, table.idempotency_key] })],
);

export interface IdempotentCall {
  key_id: string;
  method: string;
  path: string;
  idempotency_key: string;
  body_sha256: string;
}

export interface StoredReply {
  status: number;
  body: unknown;
  location: string | null;
}

export interface Idempotency {
  /** Claims the key, or returns the answer that was given. Throws idempotency_key_reused, idempotency_in_progress. */
  begin(call: IdempotentCall): Promise<StoredReply | null>;
  /** Within a transaction: keeps the answer. */
  keep(queries: Queries, call: IdempotentCall, reply: StoredReply): void;
  /** Within a transaction: forgets the claim, as after a 5xx, so that the call may be tried again. */
  release(queries: Queries, call: IdempotentCall): void;
}

export function makeIdempotency(database: Database): Idempotency {
  const sameCall = (call: IdempotentCall) =>
    and(
      eq(idempotency.key_id, call.key_id),
      eq(idempotency.method, call.method),
      eq(idempotency.path, call.path),
      eq(idempotency.idempotency_key, call.idempotency_key),
    );

  return {
    begin: (call) =>
      database.commit((queries) => {
        queries
          .delete(idempotency)
          .where(lt(idempotency.created_at, at(Date.now() - KEPT_MS)))
          .run();
        const known = queries.select().from(idempotency).where(sameCall(call)).get();
        if (!known) {
          queries
            .insert(idempotency)
            .values({ ...call, status: null, reply: null, created_at: now() })
            .run();
          return null;
        }
        if (known.body_sha256 !== call.body_sha256) throw new ServiceError("idempotency_key_reused");
        if (known.status === null) throw new ServiceError("idempotency_in_progress", { retryAfterSeconds: 1 });
        return JSON.parse(known.reply ?? "null") as StoredReply;
      }),

    keep: (queries, call, reply) => {
      queries
        .update(idempotency)
        .set({ status: reply.status, reply: JSON.stringify(reply) })
        .where(sameCall(call))
        .run();
    },

    release: (queries, call) => {
      queries
        .delete(idempotency)
        .where(and(sameCall(call), sql`${idempotency.status} IS NULL`))
        .run();
    },
  };
}

/** Claims of calls that a crash cut off: nobody will answer them, so the caller may try again. */
export function releaseUnanswered(queries: Queries): void {
  queries.delete(idempotency).where(sql`${idempotency.status} IS NULL`).run();
}
