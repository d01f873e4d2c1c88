/** Requests without a reply: found among any number of messages, and in a database that an older roomd has written. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { MIGRATIONS, migrate } from "../../../../daemon/db/migrate.ts";
import { openBarriers } from "../../../../daemon/domain/barriers/index.ts";
import { openRequests } from "../../../../daemon/domain/fabric/index.ts";
import type { RoomUid } from "../../../../shared/ids.ts";
import { watchStatements } from "../../../harness/watched-statements.ts";

const ROOM = "rom_1" as RoomUid;
const AT = "2026-01-01T00:00:00.000Z";

let connection: Connection;
beforeEach(() => {
  connection = openConnection(":memory:");
});
afterEach(() => connection.close());

/** As a daemon before this one has written it: deliveries do not say whether they are awaited. */
function writeBefore(): void {
  const before = MIGRATIONS.slice(
    0,
    MIGRATIONS.findIndex((text) => text.includes("deliveries_awaited")),
  );
  for (const text of before) connection.execute(text);
  connection.execute(`PRAGMA user_version = ${before.length}`);
  let seq = 0;
  const add = (
    id: string,
    kind: string,
    source: string,
    to: string[],
    more: { topic?: string; reply_to?: string } = {},
  ) => {
    seq++;
    const text = (value: string | undefined) => (value === undefined ? "NULL" : `'${value}'`);
    connection.execute(
      `INSERT INTO messages (room_uid, seq, message_id, source, topic, kind, size_bytes, headers, reply_to, ack_required, recipients, fingerprint, created_at)
       VALUES ('${ROOM}', ${seq}, '${id}', '${source}', ${text(more.topic)}, '${kind}', 0, '{}', ${text(more.reply_to)}, 0, '${JSON.stringify(to)}', '', '${AT}')`,
    );
    for (const agent of to) {
      connection.execute(`INSERT INTO deliveries VALUES ('${ROOM}', '${agent}', ${seq}, 'queued', 0, 0, NULL, NULL)`);
    }
  };
  add("open", "request", "a", ["b"]);
  add("half", "request", "a", ["b", "c"]);
  add("half-1", "response", "b", ["a"], { reply_to: "half" });
  add("topic", "request", "a", ["b", "c"], { topic: "t" });
  add("topic-1", "response", "c", ["a"], { reply_to: "topic" });
  add("event", "event", "a", ["b"]);
  add("remark", "event", "b", ["a"], { reply_to: "open" });
}

test("what an older roomd has kept is taken over", () => {
  writeBefore();
  migrate(connection);
  const found = openRequests(connection.queries, ROOM, 10).map(({ message_id, recipient }) => [message_id, recipient]);
  expect(found).toEqual([
    ["open", "b"],
    ["half", "c"],
  ]);
  expect(openRequests(connection.queries, ROOM, 1)).toEqual([
    { message_id: "open", source: "a", recipient: "b", topic: null, created_at: AT },
  ]);
  expect(openRequests(connection.queries, "rom_2" as RoomUid, 10)).toEqual([]);
});

test("neither requests nor barriers are looked for among all that there are", () => {
  migrate(connection);
  using watched = watchStatements(/^select/i);
  const most = { barriers: 5, nameBytes: 1000 };
  expect(openRequests(connection.queries, ROOM, 5)).toEqual([]);
  expect(openBarriers(connection.queries, ROOM, most)).toEqual({ open: [], hasMore: false });
  const plans = watched.runs.map(({ sql: text }) => {
    const steps = connection.queries.all<{ detail: string }>(
      sql.raw(`EXPLAIN QUERY PLAN ${text.replaceAll("?", "1")}`),
    );
    return steps.map(({ detail }) => detail);
  });
  expect(plans).toEqual([
    [
      "CO-ROUTINE looked",
      "SEARCH deliveries USING INDEX deliveries_awaited (room_uid=?)",
      expect.stringMatching(/^SCAN looked/),
      expect.stringMatching(/^SEARCH asked USING INDEX .*\(room_uid=\? AND seq=\?\)$/),
    ],
    ["SEARCH barriers USING INDEX barriers_waiting (room_uid=?)", "USE TEMP B-TREE FOR ORDER BY"],
  ]);
});
