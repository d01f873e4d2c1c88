/** A service of great age: a daemon that does not run gets audit records, keys, rooms and remembered calls, written directly in SQL. */
import { Database } from "bun:sqlite";
import { cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { GENESIS, HASHED, hashOfValues } from "../../../daemon/domain/audit/chain/hash-chain.ts";
import type { AuditRow } from "../../../daemon/domain/audit/table.ts";
import type { TestDaemon } from "../daemon.ts";

export interface Age {
  /** Of one organization, over the last three days. */
  records: number;
  keys: number;
  rooms: number;
  calls: number;
}

const DAYS_MS = 3 * 86_400_000;
/** As many calls with an Idempotency-Key of an organization are remembered. */
const CALLS_OF_ORG = 200_000;
const PIECE = 50_000;

const numbers = (count: number) =>
  `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
/** An identifier of the project's form. */
const id = (prefix: string, i: string) => `'${prefix}_01AGED' || printf('%020d', ${i})`;

/** The rows and the directory of the existing room are the model of the others. */
export function ageService(daemon: TestDaemon, { records, keys, rooms, calls }: Age): void {
  const database = new Database(join(daemon.dataDir, "roomd.db"));
  database.run("PRAGMA synchronous = OFF");
  const triggers = database
    .query<{ name: string; sql: string }, []>(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'audit%'",
    )
    .all();
  for (const { name } of triggers) database.run(`DROP TRIGGER ${name}`);
  copyRows(database, "api_keys", "key_id = (SELECT key_id FROM api_keys WHERE org_id IS NOT NULL LIMIT 1)", keys, {
    ...{ key_id: id("kid", "i"), name: "'key ' || i", key_sha256: "printf('%064x', i)" },
  });
  const room = database.query<{ room_uid: string }, []>("SELECT room_uid FROM rooms LIMIT 1").get();
  if (!room) throw new Error("the daemon has no room");
  copyRows(database, "rooms", `room_uid = '${room.room_uid}'`, rooms, {
    ...{ room_uid: id("rom", "i"), room_id: "'room-' || i" },
  });
  const made = database.query<{ room_uid: string }, []>("SELECT room_uid FROM rooms").all();
  for (const { room_uid } of made) copyRoom(daemon, room.room_uid, room_uid);
  database.run(
    `${numbers(calls)} INSERT INTO idempotency (key_id, method, path, idempotency_key, body_sha256, status, reply, created_at, org_id)
     SELECT 'kid_aged', 'POST', '/v1/rooms', 'call ' || i, printf('%064x', i), 200, '{}',
            strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || (1 + i % 80000) || ' seconds'), 'org_aged' || (i / ${CALLS_OF_ORG}) FROM n`,
  );
  appendRecords(database, records, made);
  for (const { sql } of triggers) database.run(sql);
  database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
}

function copyRoom({ dataDir }: TestDaemon, model: string, room: string): void {
  if (room !== model) cpSync(join(dataDir, "rooms", model), join(dataDir, "rooms", room), { recursive: true });
}

/** Copies of a row, with other values in some columns. */
function copyRows(
  database: Database,
  table: string,
  condition: string,
  count: number,
  values: Record<string, string>,
): void {
  const columns = database
    .query<{ name: string }, []>(`SELECT name FROM pragma_table_info('${table}')`)
    .all()
    .map(({ name }) => name);
  const selected = columns.map((column) => values[column] ?? `model.${column}`).join();
  database.run(
    `${numbers(count)} INSERT INTO ${table} (${columns.join()}) SELECT ${selected} FROM n, (SELECT * FROM ${table} WHERE ${condition}) AS model`,
  );
}

/** Appends records to the chain, up to now. */
function appendRecords(database: Database, count: number, rooms: readonly { room_uid: string }[]): void {
  const model = database.query<AuditRow, []>("SELECT * FROM audit WHERE org_key <> '' ORDER BY seq DESC LIMIT 1").get();
  if (!model) throw new Error("the audit has no record");
  const columns = [...HASHED, "hash"];
  const insert = database.query(`INSERT INTO audit (${columns.join()}) VALUES (${columns.map(() => "?").join()})`);
  const since = Date.now() - DAYS_MS;
  let prev_hash: string = model.hash ?? GENESIS;
  const piece = database.transaction((from: number, to: number) => {
    for (let n = from; n < to; n++) {
      const row = {
        ...model,
        ...{ seq: model.seq + 1 + n, audit_id: `aud_01AGED${String(n).padStart(20, "0")}`, prev_hash },
        at: new Date(since + Math.floor((n / count) * DAYS_MS)).toISOString(),
        ...{ event: n % 4 === 0 ? "message.sent" : "drive.written", outcome: n % 100 === 0 ? "denied" : "success" },
        room_uid: rooms[n % rooms.length]?.room_uid ?? null,
      };
      const values = HASHED.map((column) => row[column] as string | number | null);
      prev_hash = hashOfValues(values);
      insert.run(...values, prev_hash);
    }
  });
  for (let at = 0; at < count; at += PIECE) piece(at, Math.min(count, at + PIECE));
  database.run("UPDATE audit_heads SET seq = ?, hash = ? WHERE org_key = ?", [
    model.seq + count,
    prev_hash,
    model.org_key,
  ]);
}

/** Whether all records of past days are in files of their own. */
export const areDaysClosed = ({ dataDir }: TestDaemon): boolean => {
  const database = new Database(join(dataDir, "roomd.db"), { readonly: true });
  try {
    const today = new Date().toISOString().slice(0, 10);
    const open = database.query<{ n: number }, [string]>(
      "SELECT count(*) AS n FROM (SELECT 1 FROM audit WHERE org_key <> '' AND at < ? LIMIT 1)",
    );
    return open.get(today)?.n === 0 && readdirSync(join(dataDir, "audit")).some((name) => name.endsWith(".db"));
  } finally {
    database.close();
  }
};
