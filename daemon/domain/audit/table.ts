/** Drizzle schema of the audit's tables. */
import { integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { ChainKey } from "./chain/chain-key.ts";

export const audit = sqliteTable(
  "audit",
  {
    org_key: text().$type<ChainKey>().notNull(),
    seq: integer().notNull(),
    audit_id: text().notNull(),
    event: text().notNull(),
    outcome: text().$type<"success" | "denied" | "error">().notNull(),
    at: text().notNull(),
    org_id: text(),
    room_id: text(),
    room_uid: text(),
    agent_id: text(),
    sandbox_id: text(),
    actor_type: text().notNull(),
    actor_id: text().notNull(),
    actor_name: text().notNull(),
    source: text().notNull(),
    request_id: text(),
    ip: text(),
    status: integer(),
    error_code: text(),
    duration_ms: real(),
    details: text().notNull(),
    prev_hash: text().notNull(),
    hash: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.org_key, table.seq] })],
);

/** The last record of each chain. */
export const auditHeads = sqliteTable("audit_heads", {
  org_key: text().$type<ChainKey>().primaryKey(),
  seq: integer().notNull(),
  hash: text().notNull(),
});

/** The last purged record of each chain that has been purged. */
export const auditStarts = sqliteTable("audit_starts", {
  org_key: text().$type<ChainKey>().primaryKey(),
  seq: integer().notNull(),
  hash: text().notNull(),
});

/** Closed days, one file each. */
export const auditFiles = sqliteTable("audit_files", {
  number: integer().primaryKey(),
  name: text().notNull(),
  sha256: text().notNull(),
  size_bytes: integer().notNull(),
  last_at: text().notNull(),
  removed_at: text(),
});

/** Records of each chain in each closed day. */
export const auditStretches = sqliteTable(
  "audit_stretches",
  {
    org_key: text().$type<ChainKey>().notNull(),
    last_seq: integer().notNull(),
    last_hash: text().notNull(),
    first_seq: integer().notNull(),
    first_at: text().notNull(),
    last_at: text().notNull(),
    file: integer().notNull(),
  },
  ({ org_key, last_seq }) => [primaryKey({ columns: [org_key, last_seq] })],
);

/** Counts of calls that are not recorded individually, until a record reports them. */
export const auditCounts = sqliteTable(
  "audit_counts",
  {
    org_key: text().$type<ChainKey>().notNull(),
    event: text().notNull(),
    outcome: text().notNull(),
    room_uid: text().notNull(),
    agent_id: text().notNull(),
    actor_id: text().notNull(),
    error_code: text().notNull(),
    count: integer().notNull(),
    first_at: text().notNull(),
    last_at: text().notNull(),
    last_entry: text().notNull(),
  },
  ({ org_key, event, outcome, room_uid, agent_id, actor_id, error_code }) => [
    primaryKey({ columns: [org_key, event, outcome, room_uid, agent_id, actor_id, error_code] }),
  ],
);

/** For rooms that have moved: the start of the numbers of each stay here. */
export const roomStays = sqliteTable(
  "room_stays",
  {
    room_uid: text().notNull(),
    /** The chain's last record before the room arrived. */
    seq: integer().notNull(),
    /** Number of the room's last event before its arrival. */
    id: integer().notNull(),
    /** Events before the arrival moved with the room if their number is higher than this and they are retained. */
    since: integer().notNull(),
  },
  ({ room_uid, seq }) => [primaryKey({ columns: [room_uid, seq] })],
);

/** Events of a room from before it moved here. */
export const roomFormerEvents = sqliteTable(
  "room_former_events",
  {
    room_uid: text().notNull(),
    id: integer().notNull(),
    at: text().notNull(),
    record: text({ mode: "json" }).$type<AuditRow>().notNull(),
  },
  ({ room_uid, id }) => [primaryKey({ columns: [room_uid, id] })],
);

export type AuditRow = typeof audit.$inferSelect;
