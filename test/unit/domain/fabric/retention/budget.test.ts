/** The space of messages is known exactly: from messages stored and removed, from the rows, in the migration, and in the next daemon. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../../../daemon/db/client.ts";
import { migrate } from "../../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { Budget, BYTES_OF_ROW, bytesOf } from "../../../../../daemon/domain/fabric/retention/budget.ts";
import { insertMessage } from "../../../../../daemon/domain/fabric/store.ts";
import type { MessageRow } from "../../../../../daemon/domain/fabric/table.ts";
import type { OrgId, RoomUid } from "../../../../../shared/ids.ts";

const HOLDER = { org_id: "org_1" as OrgId, room_uid: "rom_1" as RoomUid };
let connection: Connection;
let database: Database;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
});
afterEach(() => database.close());

function messageOf(seq: number, more: Partial<MessageRow>): MessageRow {
  const size_bytes = Buffer.byteLength(more.payload ?? "");
  return {
    ...{ ...HOLDER, seq, message_id: `m${seq}`, source: "a", destination: null, destinations: null, topic: null },
    ...{ kind: "event", payload: null, payload_b64: null, size_bytes, headers: {}, reply_to: null },
    ...{ ack_required: false, recipients: [], fingerprint: "", created_at: "now", expires_at: null },
    ...more,
  };
}

const MESSAGES: Partial<MessageRow>[] = [
  { payload: "null" },
  { payload: JSON.stringify("größer als es aussieht 🚀") },
  { payload_b64: Buffer.alloc(3001, 7).toString("base64") },
  { payload: "1", headers: { trace: "ü", b: "x".repeat(500) } },
  { payload: "1", destination: "b", recipients: ["b"] },
  { payload: "1", destinations: ["b", "agent-2", "c.d_e"], recipients: ["b", "agent-2", "c.d_e"] },
  { payload: "1", topic: "t.u", recipients: Array.from({ length: 200 }, (_, n) => `agent-${n}`) },
];

test("a message has the same size before it is stored and as a row", async () => {
  const rows = MESSAGES.map((more, at) => messageOf(at + 1, more));
  await database.commit((queries) => rows.forEach((row) => void insertMessage(queries, row)));
  const found = database.queries.all<{ bytes: number }>(
    sql.raw(`SELECT ${BYTES_OF_ROW} AS bytes FROM messages ORDER BY seq`),
  );
  expect(found.map(({ bytes }) => bytes)).toEqual(rows.map(bytesOf));
});

test("totals are of stored minus released messages, also in a later daemon", async () => {
  const budget = new Budget(database, 10_000);
  await database.commit((queries) => budget.take(queries, HOLDER, 6000));
  const outcomes = await Promise.allSettled([
    database.commit((queries) => budget.take(queries, HOLDER, 3000)),
    database.commit((queries) => {
      budget.giveBack(queries, HOLDER, 5000);
      throw new Error("not removed");
    }),
    database.commit((queries) => budget.take(queries, HOLDER, 1001)),
    database.commit((queries) => budget.take(queries, { ...HOLDER, room_uid: "rom_2" as RoomUid }, 1000)),
    database.commit((queries) =>
      budget.take(queries, { ...HOLDER, org_id: "org_2" as OrgId, room_uid: "rom_3" as RoomUid }, 9999),
    ),
  ]);
  expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual([true, false, false, true, true]);
  expect(outcomes[2]).toMatchObject({
    reason: { code: "quota_exceeded", options: { details: { limit: "messages", used: 9000, cap: 10_000 } } },
  });
  const sums = (of: Budget) => (["org_1", "org_2"] as OrgId[]).map((org) => of.taken(database.queries, org));
  expect(sums(budget)).toEqual([10_000, 9999]);
  expect(sums(new Budget(database, 10_000))).toEqual([10_000, 9999]);
  // In one commit with another message: that counts on.
  await database.commit((queries) => {
    budget.giveBack(queries, { ...HOLDER, room_uid: "rom_2" as RoomUid }, 10);
    budget.forget(queries, HOLDER.room_uid);
  });
  expect(sums(budget)).toEqual([990, 9999]);
  expect(sums(new Budget(database, 10_000))).toEqual([990, 9999]);
});
