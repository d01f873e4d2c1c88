/** Outcome of an interrupted move that left the room on no host, by the host that freed its name. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths } from "../../../../../daemon/core/config/paths.ts";
import { makeLog } from "../../../../../daemon/core/log.ts";
import { openConnection } from "../../../../../daemon/db/client.ts";
import { migrate } from "../../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { insertOrg } from "../../../../../daemon/domain/orgs/store.ts";
import type { MoveDeps } from "../../../../../daemon/domain/rooms/move/deps.ts";
import { settleMove } from "../../../../../daemon/domain/rooms/move/send.ts";
import { getRoom, insertRoom, updateRoom } from "../../../../../daemon/domain/rooms/store.ts";
import type { KeyId, OrgId, RoomUid } from "../../../../../shared/ids.ts";

const AT = "2026-01-01T00:00:00.000Z";
const ROOM = "rom_1" as RoomUid;
let home: string;
let database: Database;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roomd-settle-"));
  const connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
  insertOrg(connection.queries, { org_id: "org_1" as OrgId, name: "o", plan: "free", created_at: AT });
  insertRoom(connection.queries, {
    ...{ room_uid: ROOM, room_id: "r", org_id: "org_1" as OrgId, host_id: "host-1", labels: {}, state: "active" },
    ...{ status_reason: "", status_message: "", last_transition_at: AT, created_at: AT, updated_at: AT },
    ...{ drive_limit_bytes: 1, drive_until_at: null, keep_drive: true, expires_at: null },
    ...{ created_by_type: "key", created_by_id: "kid_1", epoch: 1 },
    branching: null,
  });
});
afterEach(async () => {
  await database.close();
  rmSync(home, { recursive: true });
});

test.each([
  ["the other host itself: it has ended there", { host_id: "host-2", isRemoval: false }, "destroyed"],
  ["a host by which the other one was removed: it is here again", { host_id: "host-3", isRemoval: false }, "active"],
  ["the other host, which removed itself: it is here again", { host_id: "host-2", isRemoval: true }, "active"],
  ["a host that is unknown by now: it may have ended there", null, "destroyed"],
  ["a host that a set-back directory never knew: it is here again", null, "active", new Date().toISOString()],
] as const)("its name was freed by %s", async (_, freed, state, claimed_at: string = AT) => {
  const branching = { kind: "move", to: "host-2", epoch: 1, key_id: "kid_1" as KeyId, claiming: true } as const;
  updateRoom(database.queries, ROOM, { branching: { ...branching, claimed_at } });
  const deps = {
    ...{ database, hostId: "host-1", retentionSeconds: 60, paths: makePaths({ data_dir: home, runtime_dir: home }) },
    directory: {
      host: () => ({ host_id: "host-2", state: "gone" }),
      owner: () => null,
      trueOwner: async () => null,
      freedBy: async () => freed,
    },
    sandboxes: { evacuate: async () => [], forgetSnapshots: async () => {}, moves: { stays: () => {} } },
    fabric: { forget: async () => {} },
    ...{ meter: { closes: () => {} }, audit: { anchor: () => {} }, pauses: { end: () => {} } },
    peers: () => ({ settle: async () => ({}) }),
    ...{ giveUpSpace: () => false, forgetCheckpoints: () => {}, onGone: () => {}, onStays: () => {} },
    log: makeLog("error", () => {}),
  } as unknown as MoveDeps;
  expect(await settleMove(deps, ROOM)).toBe(state === "active");
  expect(getRoom(database.queries, ROOM)?.state).toBe(state);
});
