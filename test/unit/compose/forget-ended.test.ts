/** Ended rooms and sandboxes: data that calls can still read stays, the rest is deleted with all rows that refer to it. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { forgetEnded } from "../../../daemon/compose/forget-ended.ts";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";
import { roomsToForget } from "../../../daemon/domain/rooms/ended.ts";
import { endedLongAgo } from "../../../daemon/domain/sandboxes/lifecycle/forget-destroyed.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { insertRow } from "../../harness/durability/insert-row.ts";

const LONG_AGO = "2020-01-01T00:00:00.000Z";
const LATELY = "2026-01-01T00:00:00.000Z";
const BETWEEN = "2025-01-01T00:00:00.000Z";
let connection: Connection;
let database: Database;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
  for (const org of ["org_1", "org_2"]) insert("orgs", { org_id: org, name: org });
});
afterEach(() => database.close());

const insert = (table: string, values: Record<string, string | number>) =>
  insertRow(connection, database, table, values);

let made = 0;
function room(name: string, state: string, at = LATELY, more: Record<string, string> = {}): void {
  insert("rooms", { room_uid: name, room_id: name, org_id: "org_1", state, last_transition_at: at, ...more });
}
function sandbox(roomUid: string, agent_id: string, state = "destroyed", cid_held = 0): string {
  const sandbox_id = `sbx_${String(++made).padStart(6, "0")}`;
  const row = { sandbox_id, room_uid: roomUid, org_id: "org_1", agent_id, state, cid_held, egress_mode: "none" };
  insert("sandboxes", { ...row, guest_cid: 9100 + made });
  return sandbox_id;
}
const names = (table: string, column: string) =>
  database.queries
    .all<Record<string, string>>(sql.raw(`SELECT ${column} FROM ${table} ORDER BY ${column}`))
    .map((row) => row[column]);

test("sandboxes are deleted with their rooms, including ports, passwords and traffic; active ones stay", async () => {
  room("over", "destroyed");
  room("alive", "active");
  for (let n = 0; n < 250; n++) sandbox("over", `agent-${n}`);
  const rich = sandbox("over", "rich");
  insert("ports", { label: "l", sandbox_id: rich, visibility: "private" });
  insert("ssh_accesses", { access_id: "a", sandbox_id: rich });
  insert("egress_usage", { sandbox_id: rich, org_id: "org_1" });
  insert("egress_networks", { sandbox_id: rich });
  for (const slot of [0, 1]) insert("egress_destinations", { sandbox_id: rich, slot });
  const held = sandbox("over", "held", "destroyed", 1);
  const stays = [held, sandbox("alive", "a"), sandbox("alive", "b", "failed"), sandbox("alive", "c", "running", 1)];
  await forgetEnded(database, BETWEEN);
  expect(names("sandboxes", "sandbox_id")).toEqual(stays);
  const aboutIt = ["ports", "ssh_accesses", "egress_usage", "egress_networks", "egress_destinations"];
  for (const table of aboutIt) expect(names(table, "sandbox_id")).toEqual([]);
});

test("rooms are deleted after their audit, except active ones and those with a drive or leftovers", async () => {
  room("ended-lately", "destroyed");
  room("ended-long-ago", "destroyed", LONG_AGO);
  room("kept", "destroyed", LONG_AGO, { drive_until_at: LATELY });
  room("lives", "active", LONG_AGO);
  room("stuck", "destroyed", LONG_AGO);
  sandbox("stuck", "held", "destroyed", 1);
  for (let n = 0; n < 250; n++) room(`old-${n}`, "destroyed", LONG_AGO);
  await forgetEnded(database, BETWEEN);
  expect(names("rooms", "room_uid")).toEqual(["ended-lately", "kept", "lives", "stuck"]);
  await forgetEnded(database, "");
  expect(names("rooms", "room_uid")).toHaveLength(4);
});

test("the newest destroyed rooms of an organization stay listed", () => {
  for (let n = 0; n < 9; n++) room(`room-${n}`, "destroyed", `2026-01-0${n + 1}T00:00:00.000Z`);
  insert("rooms", {
    room_uid: "theirs",
    room_id: "t",
    org_id: "org_2",
    state: "destroyed",
    last_transition_at: LATELY,
  });
  expect(roomsToForget(database.queries, "org_1" as OrgId, "", 4).sort()).toEqual(
    Array.from({ length: 5 }, (_, n) => `room-${n}`),
  );
  expect(roomsToForget(database.queries, "org_1" as OrgId, "", 9)).toEqual([]);
  expect(roomsToForget(database.queries, "org_2" as OrgId, "", 4)).toEqual([]);
});

test("the newest destroyed sandboxes of an active room stay, and the newest of each agent", () => {
  room("alive", "active");
  const first = sandbox("alive", "once");
  const many = Array.from({ length: 10 }, () => sandbox("alive", "often"));
  expect(endedLongAgo(database.queries, 4)).toEqual(many.slice(0, 6));
  expect(endedLongAgo(database.queries, 11)).toEqual([]);
  expect(endedLongAgo(database.queries, 4)).not.toContain(first);
});
