/** Rooms in destruction, which the periodic reconciliation finds among thousands of live ones. */
import { sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { destroyingRooms } from "../../../../daemon/domain/rooms/store.ts";
import { watchStatements } from "../../../harness/event-loop/watched-statements.ts";

const AT = "2026-01-01T00:00:00.000Z";

test("are found by an index of organization and state", () => {
  const connection = openConnection(":memory:");
  migrate(connection);
  const { queries } = connection;
  for (const org of ["org_1", "org_2"])
    queries.run(sql`INSERT INTO orgs (org_id, name, plan, created_at) VALUES (${org}, ${org}, 'free', ${AT})`);
  for (const [at, state] of ["active", "destroying", "destroyed", "destroying"].entries())
    queries.run(
      sql`INSERT INTO rooms (room_uid, room_id, org_id, host_id, state, status_reason, status_message, last_transition_at, labels,
            drive_limit_bytes, created_at, updated_at, created_by_type, created_by_id)
          VALUES (${`rom_${at}`}, ${`r${at}`}, ${`org_${(at % 2) + 1}`}, 'h', ${state}, 'x', 'x', ${AT}, '{}', 1, ${AT}, ${AT}, 'key', 'k')`,
    );
  using watched = watchStatements(/^select/i);
  expect(destroyingRooms(queries).map(({ room_uid }) => room_uid)).toEqual(["rom_1", "rom_3"]);
  const [{ sql: text } = { sql: "" }] = watched.runs;
  const plan = queries.all<{ detail: string }>(sql.raw(`EXPLAIN QUERY PLAN ${text}`)).map(({ detail }) => detail);
  expect(plan).toContain("SEARCH rooms USING INDEX rooms_live (org_id=? AND state=?)");
  connection.close();
});
