/** The next retained drive to be erased, queried at each end of a room: independent of their number. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { insertOrg } from "../../../../daemon/domain/orgs/store.ts";
import { drivesDue, insertRoom, nextDriveDue } from "../../../../daemon/domain/rooms/store.ts";
import type { RoomRow } from "../../../../daemon/domain/rooms/table.ts";
import { newId, type OrgId } from "../../../../shared/ids.ts";

const ORG = "org_1" as OrgId;
const AT = "2026-01-01T00:00:00.000Z";
let connection: Connection;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  insertOrg(connection.queries, { org_id: ORG, name: "org", plan: "free", created_at: AT });
});
afterEach(() => connection.close());

function addRoom(room_id: string, drive_until_at: string | null, state: RoomRow["state"] = "destroyed"): void {
  insertRoom(connection.queries, {
    ...{ room_uid: newId("rom"), room_id, org_id: ORG, host_id: "host", labels: {} },
    ...{ state, status_reason: state, status_message: "", last_transition_at: AT, created_at: AT, updated_at: AT },
    ...{ drive_limit_bytes: 1, drive_until_at, keep_drive: true, expires_at: null },
    ...{ created_by_type: "key", created_by_id: "kid_1" },
  });
}

test("the first due drive is the next, and all due drives are listed", () => {
  const { queries } = connection;
  addRoom("active", null, "active");
  addRoom("erased", null);
  expect(nextDriveDue(queries, AT)).toBeNull();
  for (const day of ["03", "02", "04"]) addRoom(`kept-${day}`, `2026-01-${day}T00:00:00.000Z`);
  expect(nextDriveDue(queries, AT)).toBe("2026-01-02T00:00:00.000Z");
  // A drive that is due already is being erased, and no reason to check again.
  expect(nextDriveDue(queries, "2026-01-02T12:00:00.000Z")).toBe("2026-01-03T00:00:00.000Z");
  const due = drivesDue(queries, "2026-01-03T12:00:00.000Z").map(({ room_id }) => room_id);
  expect(due.sort()).toEqual(["kept-02", "kept-03"]);
});

test("neither is found by a scan of all rooms or all retained drives", () => {
  const planOf = (query: string) => {
    const steps = connection.queries.all<{ detail: string }>(sql.raw(`EXPLAIN QUERY PLAN ${query}`));
    return steps.map(({ detail }) => detail).join();
  };
  for (const query of [
    `SELECT min(drive_until_at) FROM rooms WHERE drive_until_at IS NOT NULL AND drive_until_at >= '${AT}'`,
    `SELECT * FROM rooms WHERE state = 'destroyed' AND drive_until_at IS NOT NULL AND drive_until_at < '${AT}'`,
  ]) {
    expect(planOf(query)).toMatch(/^SEARCH rooms USING (COVERING )?INDEX rooms_by_drive_until/);
  }
});
