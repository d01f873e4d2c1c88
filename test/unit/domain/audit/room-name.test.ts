/** Records of a room carry the room's name, by which lists are filtered. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Connection } from "../../../../daemon/db/client.ts";
import { listAudit } from "../../../../daemon/domain/audit/rows.ts";
import { appendAudit, appendAudits, limitRecords } from "../../../../daemon/domain/audit/store.ts";
import { insertRoom } from "../sandboxes/sandbox-fixture.ts";
import { auditDatabase, entry } from "./audit-fixture.ts";

let connection: Connection;
beforeEach(() => {
  connection = auditDatabase();
  insertRoom(connection);
});
afterEach(() => connection.close());

const unnamed = (n: number) => ({ ...entry(n), org_id: "org_1", room_id: undefined, room_uid: "rom_1" });

test("a record with only the room's uid is written with its name", () => {
  appendAudit(connection.queries, unnamed(1));
  appendAudits(connection.queries, [unnamed(2), { ...unnamed(3), room_id: "as-called" }]);
  const all = listAudit(connection.queries, { org_id: "org_1", order: "asc", limit: 10 });
  expect(all.map(({ room_id }) => room_id)).toEqual(["r", "r", "as-called"]);
});

test("a record without a room, or of a room without a row, is written unchanged", () => {
  appendAudits(connection.queries, [
    { ...unnamed(1), room_uid: undefined },
    { ...unnamed(2), room_uid: "rom_gone" },
  ]);
  const all = listAudit(connection.queries, { org_id: "org_1", order: "asc", limit: 10 });
  expect(all.map(({ room_id, room_uid }) => [room_id, room_uid])).toEqual([
    [null, null],
    [null, "rom_gone"],
  ]);
});

test("a counted record carries the name", () => {
  limitRecords(connection.queries, 1);
  appendAudits(connection.queries, [unnamed(1), unnamed(2), unnamed(4)]);
  const [row] = connection.queries.all<{ last_entry: string }>("SELECT last_entry FROM audit_counts");
  expect(JSON.parse(row?.last_entry ?? "")).toMatchObject({ room_id: "r", room_uid: "rom_1" });
});
