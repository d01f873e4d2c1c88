/**
 * Schema of the PostgreSQL database that hosts share: rows as JSON, numbered by the change that wrote them, so that every host's copy can
 * be updated; the list of changes, and the calls that requested them; the members and their leases; the invitations.
 * Migrations only expand it: a member of an older version keeps working.
 */
import type { Run } from "./connections.ts";
import type { Freed } from "./directory.ts";

export const VERSION = 1;
/** Notification channel for hosts that listen: there are changes, or there may be. */
export const CHANNEL = "roomd";

/** Message of the exception. */
export const ANCHORS_STAY = "anchors of the audit are added, and neither changed nor removed";

const STATEMENTS = [
  "CREATE SCHEMA IF NOT EXISTS roomd",
  `CREATE TABLE IF NOT EXISTS roomd.cluster (
     only_one   boolean PRIMARY KEY DEFAULT true CHECK (only_one),
     cluster_id text NOT NULL,
     version    integer NOT NULL,
     seq        bigint NOT NULL
   )`,
  `CREATE TABLE IF NOT EXISTS roomd.changes (
     seq       bigint PRIMARY KEY,
     change_id text NOT NULL UNIQUE,
     host_id   text NOT NULL,
     at        timestamptz NOT NULL DEFAULT now()
   )`,
  // `row` is null for a deleted row.
  `CREATE TABLE IF NOT EXISTS roomd.rows (
     tbl text NOT NULL,
     key text NOT NULL,
     "row" jsonb,
     seq bigint NOT NULL,
     PRIMARY KEY (tbl, key)
   )`,
  "CREATE INDEX IF NOT EXISTS rows_by_seq ON roomd.rows (seq, tbl, key)",
  `CREATE INDEX IF NOT EXISTS rows_deleted ON roomd.rows (seq) WHERE "row" IS NULL`,
  // A room's name is unique, whatever the state of a host's copy.
  `CREATE UNIQUE INDEX IF NOT EXISTS rows_room_names ON roomd.rows (("row" ->> 'org_id'), ("row" ->> 'room_id'))
     WHERE tbl = 'placements' AND "row" IS NOT NULL`,
  // Calls with an Idempotency-Key that changed rows, and the host that stores their replies.
  `CREATE TABLE IF NOT EXISTS roomd.done_calls (
     key_id          text NOT NULL,
     method          text NOT NULL,
     path            text NOT NULL,
     idempotency_key text NOT NULL,
     host_id         text NOT NULL,
     at              timestamptz NOT NULL DEFAULT now(),
     PRIMARY KEY (key_id, method, path, idempotency_key)
   )`,
  "CREATE INDEX IF NOT EXISTS done_calls_by_time ON roomd.done_calls (at)",
  `CREATE TABLE IF NOT EXISTS roomd.leases (
     host_id     text PRIMARY KEY,
     incarnation text NOT NULL,
     version     text NOT NULL,
     lease_until timestamptz NOT NULL,
     load        jsonb NOT NULL,
     -- Which process says so, and where its data lies: of two with the same data one is a member.
     run         text NOT NULL DEFAULT '',
     place       text NOT NULL DEFAULT ''
   )`,
  `CREATE TABLE IF NOT EXISTS roomd.invitations (
     token_sha256 text PRIMARY KEY,
     sealed       text NOT NULL,
     expires_at   timestamptz NOT NULL
   )`,
];

/** Additions since the first version, each with the query that detects its absence. */
const ADDED = [
  {
    is_missing: "SELECT to_regclass('roomd.audit_anchors') IS NULL AS is_missing",
    statements: [
      `CREATE TABLE IF NOT EXISTS roomd.audit_anchors (
         host_id     text NOT NULL,
         incarnation text NOT NULL,
         -- Empty: the chain of what belongs to no organization.
         org_id      text COLLATE "C" NOT NULL,
         seq         bigint NOT NULL,
         hash        text NOT NULL,
         at          timestamptz NOT NULL DEFAULT now(),
         PRIMARY KEY (host_id, incarnation, org_id, seq)
       )`,
      `CREATE OR REPLACE FUNCTION roomd.refuse_change() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION '${ANCHORS_STAY}'; END $$`,
      `CREATE OR REPLACE TRIGGER audit_anchors_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON roomd.audit_anchors
         FOR EACH STATEMENT EXECUTE FUNCTION roomd.refuse_change()`,
    ],
  },
  {
    is_missing: `SELECT NOT EXISTS (SELECT FROM pg_attribute
       WHERE attrelid = to_regclass('roomd.leases') AND attname = 'beat_id' AND NOT attisdropped) AS is_missing`,
    statements: [
      // Number of beats by the host's daemons, and the random value of the last beat.
      "ALTER TABLE roomd.leases ADD COLUMN IF NOT EXISTS beat bigint NOT NULL DEFAULT 0",
      "ALTER TABLE roomd.leases ADD COLUMN IF NOT EXISTS beat_id text NOT NULL DEFAULT ''",
    ],
  },
] as const;

/** Makes the missing parts. Within a transaction. */
export async function makeSchema(run: Run): Promise<void> {
  for (const statement of STATEMENTS) await run(statement);
  for (const { statements } of ADDED) for (const statement of statements) await run(statement);
}

/**
 * Adds the parts of later versions than the database's own; members upgrade one after another, and an older member is unaffected. Within a
 * transaction.
 */
export async function bringUp(run: Run): Promise<void> {
  for (const { is_missing, statements } of ADDED) {
    const { rows } = await run(is_missing);
    if (rows[0]?.is_missing !== true) continue;
    await run("SELECT FROM roomd.cluster FOR UPDATE");
    for (const statement of statements) await run(statement);
  }
}

/** The change that freed a room's placement; null if the change was pruned, or a host has the room. Within a transaction. */
export async function whoFreed(run: Run, roomUid: string): Promise<Freed | null> {
  const { rows } = await run(
    `SELECT changes.host_id, EXISTS (
         SELECT FROM roomd.rows AS hosts
          WHERE hosts.tbl = 'hosts' AND hosts.key = json_build_array(changes.host_id)::text AND hosts.seq = placed.seq
            AND hosts."row" ->> 'state' = 'gone'
       ) AS is_removal
       FROM roomd.rows AS placed JOIN roomd.changes USING (seq)
      WHERE placed.tbl = 'placements' AND placed.key = $1 AND placed."row" IS NULL`,
    [JSON.stringify([roomUid])],
  );
  const [freed] = rows;
  return freed === undefined ? null : { host_id: String(freed.host_id), isRemoval: freed.is_removal === true };
}

/** Age at which deleted rows and changes are pruned: a host that was unavailable for longer compares its whole copy (whole.ts). */
const FORGET_AFTER = "7 days";
const FORGET_ROWS = 1_000;

/**
 * Prunes old changes, up to a limit, oldest first and never the last; and deleted rows older than the oldest known change, which any host
 * that continues from a known change has seen. Returns the number pruned; 0 once all are. Within a transaction.
 */
export async function forgetOld(run: Run): Promise<number> {
  const { rows } = await run(
    `WITH oldest AS (SELECT seq, at FROM roomd.changes WHERE seq < (SELECT seq FROM roomd.cluster) ORDER BY seq LIMIT ${FORGET_ROWS}),
          forgotten AS (DELETE FROM roomd.changes WHERE seq IN (SELECT seq FROM oldest WHERE at < now() - interval '${FORGET_AFTER}')
                        RETURNING seq)
     SELECT count(*)::int AS count FROM forgotten`,
  );
  const { rows: deleted } = await run(
    `WITH old AS (SELECT tbl, key FROM roomd.rows WHERE "row" IS NULL AND seq < (SELECT min(seq) FROM roomd.changes)
                   ORDER BY seq LIMIT ${FORGET_ROWS}),
          forgotten AS (DELETE FROM roomd.rows USING old
                         WHERE rows.tbl = old.tbl AND rows.key = old.key AND "row" IS NULL RETURNING rows.seq)
     SELECT count(*)::int AS count FROM forgotten`,
  );
  return Number(rows[0]?.count) + Number(deleted[0]?.count);
}
