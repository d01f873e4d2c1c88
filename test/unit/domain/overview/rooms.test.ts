/** Overview of rooms while their state changes between two turns of the event loop. */
import { expect, test } from "vitest";
import { trialCall } from "../../../../daemon/core/call/operation.ts";
import { WaitGraph } from "../../../../daemon/core/concurrency/wait-graph.ts";
import { openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { ReadPool } from "../../../../daemon/db/readers/pool.ts";
import { makeDatabase } from "../../../../daemon/db/transact.ts";
import type { OverviewDeps, OverviewRoom } from "../../../../daemon/domain/overview/deps.ts";
import { makeRoomOverview } from "../../../../daemon/domain/overview/rooms.ts";
import type { RoomGlance } from "../../../../shared/api/overview/room-overview.ts";
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";

const ORG = "org_1" as OrgId;
const CALLER = { org_id: ORG, scopes: ["rooms:read", "usage:read"], agent_id: null, room_ids: null } as never;
/** More than is done in one turn. */
const SLOW_MS = 20;

const roomOf = (room_id: string): OverviewRoom => ({
  ...{ room_id, room_uid: `rom_${room_id}` as RoomUid, org_id: ORG, host_id: "host-1", state: "active", labels: {} },
  ...{ drive_limit_bytes: 9, drive_until_at: null, created_at: "2026-01-31T12:00:00.000Z", expires_at: null },
});

/** Returns the overview; calls `does` after the first room was read, in a later turn. */
async function look(rooms: OverviewRoom[], does: () => void, change: Partial<OverviewDeps["rooms"]> = {}) {
  const connection = openConnection(":memory:");
  migrate(connection);
  const database = makeDatabase(connection);
  const asked: string[] = [];
  const deps: OverviewDeps = {
    queries: database.queries,
    reads: new ReadPool(database, null),
    trace_url: null,
    findRoom: () => {
      throw new Error("no room is found by name");
    },
    agents: {
      waits: new WaitGraph(),
      all: (uid) => {
        asked.push(uid);
        Bun.sleepSync(SLOW_MS);
        if (asked.length === 1) setImmediate(does);
        return ["worker"];
      },
      isGone: () => false,
      sandboxes: () => [],
    },
    sandboxes: { going: () => ({ commands: [], standby: [] }) },
    rooms: {
      page: () => ({ rows: rooms.map((each) => ({ ...each })), next_cursor: null }),
      current: (uid) => rooms.find(({ room_uid }) => room_uid === uid),
      driveUsed: async () => 5,
      ...change,
    },
    messagesLately: () => 0,
    costs: () => () => null,
  };
  const bound = makeRoomOverview(deps);
  const { body } = await bound.run(trialCall(CALLER), {}, undefined, undefined as never);
  await database.close();
  return { items: (body as { items: RoomGlance[] }).items, asked };
}

test("a room that ends before its turn is shown as ended, and is not queried", async () => {
  const rooms = [roomOf("a"), roomOf("b"), roomOf("c")];
  const { items, asked } = await look(rooms, () => {
    rooms[1] = { ...roomOf("b"), state: "destroyed" };
    rooms.length = 2;
  });
  expect(items.map(({ state, agents }) => [state, agents])).toEqual([
    ["active", 1],
    ["destroyed", 0],
    ["destroyed", 0],
  ]);
  expect(asked).toEqual(["rom_a"]);
});

test("an unreadable drive does not affect the other rooms", async () => {
  const { items } = await look([roomOf("a"), roomOf("b")], () => {}, {
    driveUsed: async ({ room_id }) => {
      if (room_id === "a") throw new Error("EIO");
      return 5;
    },
  });
  expect(items.map(({ drive }) => drive.used_bytes)).toEqual([0, 5]);
});
