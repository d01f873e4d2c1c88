/** Requests without a reply: found among any number of messages. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { wholly } from "../../../../daemon/core/loop/index.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { openBarriers } from "../../../../daemon/domain/barriers/index.ts";
import { openRequests } from "../../../../daemon/domain/fabric/index.ts";
import type { RoomUid } from "../../../../shared/ids.ts";
import { watchStatements } from "../../../harness/event-loop/watched-statements.ts";

const ROOM = "rom_1" as RoomUid;
const AT = "2026-01-01T00:00:00.000Z";

let connection: Connection;
beforeEach(() => {
  connection = openConnection(":memory:");
});
afterEach(() => connection.close());

/** A request of `a` for each recipient; whether its reply is awaited is in the delivery. */
function addRequest(seq: number, id: string, awaited: Record<string, boolean>): void {
  connection.execute(
    `INSERT INTO messages (room_uid, seq, message_id, source, kind, size_bytes, headers, ack_required, recipients, fingerprint, created_at)
     VALUES ('${ROOM}', ${seq}, '${id}', 'a', 'request', 0, '{}', 0, '${JSON.stringify(Object.keys(awaited))}', '', '${AT}')`,
  );
  for (const [agent, isAwaited] of Object.entries(awaited)) {
    connection.execute(
      `INSERT INTO deliveries (room_uid, agent_id, seq, state, attempts, ack_required, awaited) VALUES ('${ROOM}', '${agent}', ${seq}, 'queued', 0, 0, ${isAwaited ? 1 : 0})`,
    );
  }
}

test("open requests are those that await a reply, by recipient, the oldest first", () => {
  migrate(connection);
  addRequest(1, "open", { b: true });
  addRequest(2, "half", { b: false, c: true });
  addRequest(3, "answered", { b: false, c: false });
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

test("neither requests nor barriers are searched by a full scan", () => {
  migrate(connection);
  using watched = watchStatements(/^select/i);
  const most = { barriers: 5, nameBytes: 1000 };
  expect(openRequests(connection.queries, ROOM, 5)).toEqual([]);
  expect(wholly(openBarriers(connection.queries, ROOM, most))).toEqual({ open: [], hasMore: false });
  const plans = watched.runs.map(({ sql: text }) => {
    const steps = connection.queries.all<{ detail: string }>(
      sql.raw(`EXPLAIN QUERY PLAN ${text.replaceAll("?", "1")}`),
    );
    return steps.map(({ detail }) => detail);
  });
  expect(plans).toEqual([
    ["SEARCH room_rows USING PRIMARY KEY (room_uid=?)"],
    [
      "CO-ROUTINE looked",
      "SEARCH deliveries USING INDEX deliveries_awaited (room_uid=?)",
      expect.stringMatching(/^SCAN looked/),
      expect.stringMatching(/^SEARCH asked USING INDEX .*\(room_uid=\? AND seq=\?\)$/),
    ],
    ["SEARCH room_rows USING PRIMARY KEY (room_uid=?)"],
    ["SEARCH barriers USING INDEX barriers_waiting (room_uid=?)", "USE TEMP B-TREE FOR ORDER BY"],
  ]);
});
