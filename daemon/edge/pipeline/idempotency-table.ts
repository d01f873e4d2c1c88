/** Table of calls with an Idempotency-Key as queries see it, and the identity of its rows. */
import { createHash } from "node:crypto";
import { and, eq } from "drizzle-orm";
import { blob, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { ulidFrom } from "../../../shared/ids.ts";
import type { StartedWork } from "../../core/call/call-effects.ts";

export const idempotency = sqliteTable(
  "idempotency",
  {
    key_id: text().notNull(),
    method: text().notNull(),
    path: text().notNull(),
    idempotency_key: text().notNull(),
    body_sha256: text().notNull(),
    /** Null: it has no answer. */
    status: integer(),
    reply: text(),
    created_at: text().notNull(),
    /** A large reply, compressed; then `reply` is null. */
    reply_zstd: blob({ mode: "buffer" }),
    /** Size of `reply_zstd`. */
    reply_bytes: integer().notNull().default(0),
    /** The work that the call has started, as long as it has no response. */
    begun: text({ mode: "json" }).$type<StartedWork>(),
    /** The organization of the key; '' if it has none. */
    org_id: text().notNull().default(""),
    /** Size of the stored reply, in either form. */
    kept_bytes: integer().notNull().default(0),
    /** The name of the work, if it does not derive from the other columns. */
    work_ulid: text(),
  },
  (table) => [primaryKey({ columns: [table.key_id, table.method, table.path, table.idempotency_key] })],
);

/** Sums of the calls of an organization, and of a key: triggers keep them. */
export const idempotencyUse = sqliteTable(
  "idempotency_use",
  {
    kind: text().notNull(),
    subject: text().notNull(),
    calls: integer().notNull(),
    /** Of an organization's replies; of a key's large replies. */
    bytes: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.subject] })],
);

export interface IdempotentCall {
  key_id: string;
  method: string;
  path: string;
  idempotency_key: string;
  body_sha256: string;
  org_id: string;
}

const { key_id, method, path, idempotency_key } = idempotency;
export const KEY = { key_id, method, path, idempotency_key };

export function sameCall(call: Pick<IdempotentCall, keyof typeof KEY>) {
  return and(
    eq(key_id, call.key_id),
    eq(method, call.method),
    eq(path, call.path),
    eq(idempotency_key, call.idempotency_key),
  );
}

/** Identifier of a call's work, the same as long as the call has no answer. */
export function workUlid(call: Omit<IdempotentCall, "org_id">, createdAt: string): string {
  const { key_id, method, path, idempotency_key, body_sha256 } = call;
  const text = JSON.stringify([key_id, method, path, idempotency_key, body_sha256, createdAt]);
  return ulidFrom(Date.parse(createdAt), createHash("sha256").update(text).digest());
}
