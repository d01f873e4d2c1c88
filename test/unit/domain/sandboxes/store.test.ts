/**
 * Queries about the whole host read the current rows only, and not those of all ended sandboxes: they run at every scrape, create and
 * reconciliation.
 */
import { Database, type SQLQueryBindings } from "bun:sqlite";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { expect, test } from "vitest";
import type { Queries } from "../../../../daemon/db/client.ts";
import { MIGRATIONS } from "../../../../daemon/db/migrate.ts";
import { countAllRooms } from "../../../../daemon/domain/rooms/index.ts";
import * as sandboxes from "../../../../daemon/domain/sandboxes/store.ts";
import { newId, type RoomUid } from "../../../../shared/ids.ts";

const questions: [string, (queries: Queries) => unknown][] = [
  ["countStates", sandboxes.countStates],
  ["memoryPromised", sandboxes.memoryPromised],
  ["undestroyed", sandboxes.undestroyed],
  ["unfinished", sandboxes.unfinished],
  ["wokenByMessages", sandboxes.wokenByMessages],
  ["heldCids", sandboxes.heldCids],
  ["orgCids", (queries) => sandboxes.orgCids(queries, newId("org"))],
  ["countAllRooms", countAllRooms],
];

test("an inbox keeps its sandbox awake while it has messages not read past, acked or expired", () => {
  const database = new Database(":memory:");
  for (const { sql } of MIGRATIONS) database.run(sql);
  database.run("PRAGMA foreign_keys = off");
  const queries = drizzle(database);
  const row = { room_uid: "rom_1" as RoomUid, agent_id: "a", fabric_attached: true, wake_on: ["message" as const] };
  const put = (seq: number, agentId: string, state: string, expires: number | null) =>
    database.run(
      "INSERT INTO deliveries (room_uid, agent_id, seq, state, attempts, ack_required, expires_at_ms) VALUES ('rom_1', ?, ?, ?, 0, 0, ?)",
      [agentId, seq, state, expires],
    );
  put(1, "a", "acked", null);
  put(2, "a", "read", null);
  put(3, "a", "queued", Date.now() - 1);
  put(4, "b", "queued", null);
  expect(sandboxes.isCalled(queries, row)).toBe(false);
  put(5, "a", "queued", Date.now() + 60_000);
  expect(sandboxes.isCalled(queries, row)).toBe(true);
  database.run("UPDATE deliveries SET state = 'delivered' WHERE seq = 5");
  expect(sandboxes.isCalled(queries, row)).toBe(true);
  // Sent at a time, it is called only since then.
  database.run(
    `INSERT INTO messages (room_uid, seq, message_id, source, kind, size_bytes, headers, ack_required, recipients, fingerprint, created_at)
     VALUES ('rom_1', 5, 'm', 'b', 'event', 0, '{}', 0, '[]', '', '2026-01-01T00:00:02.000Z')`,
  );
  const since = (second: number) => sandboxes.isCalled(queries, row, `2026-01-01T00:00:0${second}.000Z`);
  expect([1, 2, 3].map(since)).toEqual([true, true, false]);
  expect(sandboxes.isCalled(queries, { ...row, wake_on: ["api"] })).toBe(false);
  expect(sandboxes.isCalled(queries, { ...row, fabric_attached: false })).toBe(false);
});

test.each(questions)("%s uses its own index", (_, ask) => {
  const database = new Database(":memory:");
  for (const { sql } of MIGRATIONS) database.run(sql);
  const partial = database
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'")
    .all();
  const queries: { sql: string; values: unknown[] }[] = [];
  ask(drizzle(database, { logger: { logQuery: (sql, values) => queries.push({ sql, values }) } }));
  expect(queries.length).toBe(1);
  for (const { sql, values } of queries) {
    const steps = database
      .query<{ detail: string }, SQLQueryBindings[]>(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...(values as SQLQueryBindings[]));
    const [index] = steps.map(({ detail }) => / INDEX (\w+)/.exec(detail)?.[1]);
    expect(
      partial.map(({ name }) => name),
      steps.map(({ detail }) => detail).join(),
    ).toContain(index);
  }
});
