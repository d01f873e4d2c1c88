/** An organization with 5,000 rooms, and the longest turn of the event loop while its usage and its rooms are read. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Bound, trialCall } from "../../../daemon/core/call/operation.ts";
import { WaitGraph } from "../../../daemon/core/concurrency/wait-graph.ts";
import { makePaths } from "../../../daemon/core/config/paths.ts";
import { makeLog } from "../../../daemon/core/log.ts";
import { openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { ReadPool } from "../../../daemon/db/readers/pool.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";
import { makeDrive } from "../../../daemon/domain/drive/index.ts";
import { Credits, Meter, makeQuota, roomCosts } from "../../../daemon/domain/orgs/index.ts";
import { insertOrg } from "../../../daemon/domain/orgs/store.ts";
import { momentNow } from "../../../daemon/domain/orgs/usage/clock.ts";
import { FREE } from "../../../daemon/domain/orgs/usage/prices.ts";
import { makeUsage } from "../../../daemon/domain/orgs/usage/usage.ts";
import { makeRoomOverview } from "../../../daemon/domain/overview/rooms.ts";
import { makeRoomFinder } from "../../../daemon/domain/rooms/index.ts";
import { pageOfRooms } from "../../../daemon/domain/rooms/page.ts";
import { getRoom } from "../../../daemon/domain/rooms/store.ts";
import { threadTime } from "../../../daemon/host/thread-time.ts";
import { Throttle } from "../../../daemon/host/virtiofs/throttle.ts";
import type { RoomGlance } from "../../../shared/api/overview/room-overview.ts";
import type { UsageReport } from "../../../shared/api/usage.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

const ROOMS = 5_000;
/** Of these the first is destroyed, and its drive retained. */
const BYTES = 4096;
const PAGE = 500;
const MAX_MS = 15;
const OVERVIEW_MS = 500;
const ORG = "org_1" as OrgId;
const AT = "2026-01-31T12:00:00.000Z";
const CALLER = { org_id: ORG, plan: "free", scopes: ["rooms:read", "usage:read"], agent_id: null, room_ids: null };
const CAPS = { soft_cap: 1e6, hard_cap: 1e6 };
const DRIVE_CAPS = { soft_cap_bytes: 1e12, hard_cap_bytes: 1e12 };

let home: string;
let database: Database;
let operations: { usage: Bound; overview: Bound };
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "roomd-many-rooms-"));
  const connection = openConnection(":memory:");
  migrate(connection);
  insertOrg(connection.queries, { org_id: ORG, name: "one", plan: "free", created_at: AT });
  const numbers = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${ROOMS})`;
  connection.execute(`${numbers} INSERT INTO rooms (room_uid, room_id, org_id, host_id, state, status_reason, status_message,
      last_transition_at, labels, drive_limit_bytes, drive_until_at, created_at, updated_at, created_by_type, created_by_id)
    SELECT printf('rom_%05d', i), printf('r-%05d', i), '${ORG}', 'host-1', iif(i = 1, 'destroyed', 'active'), '', '', '${AT}', '{"a":"b"}', 1000000000,
      iif(i = 1, '2036-01-01T00:00:00.000Z', NULL), '${AT}', '${AT}', 'key', 'kid_1' FROM n`);
  const { wall_ms, uptime_ms, boot_id } = momentNow();
  connection.execute(`${numbers} INSERT INTO usage_open (subject, org_id, room_uid, agent_id, key_id, vcpu_count, memory_mib, drive_bytes,
      wall_ms, uptime_ms, boot_id)
    SELECT printf('rom_%05d', i), '${ORG}', printf('rom_%05d', i), '', 'kid_1', 0, 0, 3600000000, ${wall_ms - 10_000}, ${Math.round(uptime_ms) - 10_000} + i / 16, '${boot_id}'
      FROM n`);
  database = makeDatabase(connection);
  operations = compose(makePaths({ data_dir: home, runtime_dir: home }));
});
afterAll(async () => {
  await database.close();
  rmSync(home, { recursive: true });
});

function compose(paths: ReturnType<typeof makePaths>) {
  const { queries } = database;
  const log = makeLog("error", () => {});
  const reads = new ReadPool(database, null);
  const finder = makeRoomFinder(database, paths, { require: () => {}, standing: () => "here" } as never);
  for (let n = 1; n <= ROOMS; n++) {
    const uid = `rom_${String(n).padStart(5, "0")}`;
    const drive = n === 1 ? paths.drive_in(paths.retired_room(uid)) : paths.drive(uid);
    mkdirSync(drive, { recursive: true });
    writeFileSync(join(drive, "f"), "x".repeat(BYTES));
  }
  const drive = makeDrive({
    ...{ findRoom: finder.find, roomsOf: finder.ofOrg, keptOf: finder.keptOf, capsOf: () => DRIVE_CAPS },
    ...{ limitEntries: 1e6, sharesOf: () => [], kernelUse: () => null, restraints: new Throttle(), log },
    ...{ onSoftExceeded: () => {}, onUsed: () => {}, giveUpSpace: () => false },
  });
  const meter = new Meter(database, FREE);
  const plan = { rooms: CAPS, sandboxes: CAPS, memory_mib: CAPS, disk_gib: CAPS, template_mib: CAPS };
  const plans = { free: { ...plan, drive: DRIVE_CAPS, credits: 1000 } } as never;
  const held = () => ({ rooms: ROOMS - 1, sandboxes: 0, memory_mib: 0, disk_gib: 0 });
  const quota = makeQuota({ queries, plans, held, driveUsed: drive.measureOrg, templateMib: async () => 0 });
  const credits = new Credits({
    ...{ database, log, meter, graceSeconds: 0, usedElsewhere: () => 0, planCredits: () => 1000 },
  });
  const usage = makeUsage({
    ...{ reads, meter, findOrg: () => ORG, credits: (orgId) => credits.standing(queries, orgId) },
    standing: async (orgId) => ({ ...(await quota.standing(orgId)), guest_cids: { in_use: 0, total: 1 } }),
    nameOf: (_, id) => finder.nameOf(id),
  });
  const overview = makeRoomOverview({
    ...{ queries, reads, findRoom: finder.find, trace_url: null, messagesLately: () => 0 },
    agents: { waits: new WaitGraph(), all: () => [], isGone: () => false, sandboxes: () => [] },
    sandboxes: { going: () => ({ commands: [], standby: [] }) },
    rooms: {
      page: (caller, query) => pageOfRooms(queries, "host-1", caller, query),
      current: (uid) => getRoom(queries, uid),
      driveUsed: async () => BYTES,
    },
    costs: (orgId) => roomCosts(queries, meter, FREE, orgId),
  });
  return { usage, overview };
}

async function measured<T>(name: string, bound: Bound, input: object): Promise<T> {
  const ask = async () => (await bound.run(trialCall(CALLER as never), input, ORG, undefined as never)).body;
  let body: unknown;
  const longest = await longestTurn(async () => {
    body = await ask();
  });
  console.log(`${name}: longest turn ${longest.toFixed(1)} ms`);
  expect(longest).toBeLessThan(boundOf(MAX_MS));
  return body as T;
}

test("the usage of 5,000 drives is measured and summed in short turns", async () => {
  for (const name of ["first usage", "usage"]) {
    const { drive, totals, groups, others } = await measured<UsageReport>(name, operations.usage, { group_by: "room" });
    expect(drive.used_bytes).toBe(ROOMS * BYTES);
    expect(totals.drive_byte_hours).toBeGreaterThanOrEqual(ROOMS * 10_000);
    expect([groups?.length, others?.group_count]).toEqual([1000, ROOMS - 1000]);
  }
});

test("the overview of 500 rooms takes the time of these, not of all others for each", async () => {
  const before = threadTime();
  const { items } = await measured<{ items: RoomGlance[] }>("overview", operations.overview, { limit: PAGE });
  const ms = threadTime() - before;
  console.log(`overview: ${ms.toFixed(0)} ms`);
  expect(items).toHaveLength(PAGE);
  expect(ms).toBeLessThan(boundOf(OVERVIEW_MS));
});
