/** Erasure of rooms' directories: one at a time, whatever their contents, and without needless waits. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { makeStandalone } from "../../../../daemon/cluster/standalone.ts";
import { CallStats } from "../../../../daemon/core/call/call-stats.ts";
import { InFlightCalls } from "../../../../daemon/core/call/in-flight-calls.ts";
import { makePaths, type Paths } from "../../../../daemon/core/config/paths.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { insertOrg } from "../../../../daemon/domain/orgs/store.ts";
import type { RoomDeps } from "../../../../daemon/domain/rooms/deps.ts";
import { Eraser } from "../../../../daemon/domain/rooms/erase.ts";
import { makeOwnership, makeRoomFinder, makeRooms } from "../../../../daemon/domain/rooms/index.ts";
import { getRoom, insertRoom } from "../../../../daemon/domain/rooms/store.ts";
import type { RoomRow } from "../../../../daemon/domain/rooms/table.ts";
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";
import { makeNest } from "../../../harness/nest.ts";

const AT = "2026-01-01T00:00:00.000Z";
let root: string;
let paths: Paths;
let connection: Connection;
let database: Database;
const logged: string[] = [];
/** Erasures that were started, in order; `fails` are the rooms that cannot be erased. */
const erasures: string[] = [];
const fails = new Set<string>();

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "roomd-rooms-"));
  paths = makePaths({ data_dir: join(root, "data"), runtime_dir: join(root, "run") });
  mkdirSync(paths.rooms, { recursive: true });
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
  for (const list of [logged, erasures]) list.length = 0;
  fails.clear();
});
afterEach(async () => {
  await database.close();
  rmSync(root, { recursive: true });
});

const uid = (name: string) => `rom_${name}` as RoomUid;
const driveQuota = {
  begin: () => {},
  renew: () => {},
  end: (drive: string) => {
    const name = /rom_([^/]+)/.exec(drive)?.[1] ?? "";
    if (erasures.at(-1) !== name) erasures.push(name);
    if (fails.has(name)) throw new Error("the disk is broken");
  },
};
const eraser = () => new Eraser({ paths, driveQuota, giveUpSpace: () => false });
const room = (org: string, name: string) => ({ org_id: org as OrgId, room_uid: uid(name) });

/** A retained drive that is due, with this number of files. */
function addRetired(name: string, files: number): void {
  const drive = join(paths.retired_room(uid(name)), "drive");
  mkdirSync(drive, { recursive: true });
  for (let n = 0; n < files; n++) writeFileSync(join(drive, `f${n}`), "");
}

test("one room is erased at a time, organizations take turns, and a repeated call joins", async () => {
  for (const name of ["a1", "a2", "a3", "b1"]) addRetired(name, 50);
  const one = eraser();
  const work = [room("org_a", "a1"), room("org_a", "a2"), room("org_a", "a3"), room("org_b", "b1")].map((each) =>
    one.erase(each),
  );
  expect(one.erase(room("org_a", "a2"))).toBe(work[1] as Promise<void>);
  expect(erasures).toEqual(["a1"]);
  await Promise.all(work);
  expect(erasures).toEqual(["a1", "a2", "b1", "a3"]);
  expect(one.has(uid("a1"))).toBe(false);
  for (const name of ["a1", "a2", "a3", "b1"]) expect(existsSync(paths.retired_room(uid(name)))).toBe(false);
});

test("a failed erasure blocks no other, and can be repeated", async () => {
  for (const name of ["bad", "good"]) addRetired(name, 5);
  fails.add("bad");
  const one = eraser();
  const bad = one.erase(room("org_a", "bad"));
  const good = one.erase(room("org_a", "good"));
  await expect(bad).rejects.toThrow("broken");
  await good;
  expect(existsSync(paths.retired_room(uid("good")))).toBe(false);
  fails.clear();
  await one.erase(room("org_a", "bad"));
  expect(existsSync(paths.retired_room(uid("bad")))).toBe(false);
});

test("a tree of any depth is erased without blocking the event loop", async () => {
  mkdirSync(paths.drive(uid("deep")), { recursive: true });
  (await makeNest(paths.drive(uid("deep")), 3000, { files: 1 }))[Symbol.dispose]();
  let turns = 0;
  const counting = setInterval(() => turns++, 1);
  await eraser().erase(room("org_a", "deep"));
  clearInterval(counting);
  expect(turns).toBeGreaterThan(10);
  expect(existsSync(paths.room(uid("deep")))).toBe(false);
}, 120_000);

const NOTHING_BRANCHES = {} as RoomDeps["branch"];
const holding: RoomDeps["drive"]["holding"] = (_room, work) => work();

function makeAll() {
  const noDrive = { measure: async () => ({ used_bytes: 0, file_count: 0 }), modeOf: () => "open" as const };
  const forgotten: string[] = [];
  const directory = makeStandalone(database, "host");
  const ownership = makeOwnership({ directory, hostId: "host" });
  const deps = {
    database,
    directory,
    ownership,
    paths,
    log: makeLog("error", (line) => logged.push(line)),
    quota: { admit: () => [], require: () => {} },
    hostId: "host",
    driveLimitBytes: 1,
    driveLimitEntries: 1,
    retentionSeconds: 1,
    giveUpSpace: () => false,
    driveRoot: () => 0,
    driveQuota,
    meter: { closes: () => {} },
    branch: NOTHING_BRANCHES,
    recoverPorts: () => {},
    onEvent: () => {},
    drive: {
      ...noDrive,
      ...{ holding, still: holding },
      sweep: async () => {},
      keep: () => {},
      forget: (name: string) => forgotten.push(name),
    },
    fabric: { endWaits: () => {}, forget: async () => {} },
    sandboxes: {
      countLive: () => 0,
      destroyAll: async () => [],
      evacuate: async () => [],
      forgetSnapshots: async () => {},
      moves: null as never,
    },
    calls: new InFlightCalls(),
    audit: { anchor: () => {}, endRoom: () => {} },
    pauses: { begin: () => {}, end: () => {} },
    moveTally: new CallStats(),
    peers: () => {
      throw new Error("there are no others");
    },
  };
  return { rooms: makeRooms(deps, makeRoomFinder(database, paths, ownership)), forgotten };
}

function addDue(name: string): void {
  const org_id = `org_${name}` as OrgId;
  insertOrg(connection.queries, { org_id, name, plan: "free", created_at: AT });
  insertRoom(connection.queries, {
    ...{ room_uid: uid(name), room_id: name, org_id, host_id: "host", labels: {}, state: "destroyed" as const },
    ...{ status_reason: "destroyed", status_message: "", last_transition_at: AT, created_at: AT, updated_at: AT },
    ...{ drive_limit_bytes: 1, drive_until_at: AT, keep_drive: true, expires_at: null },
    ...{ created_by_type: "key", created_by_id: "kid_1", former_ids: [], branching: null, epoch: 1 },
  } satisfies RoomRow);
}

test("upkeep does not wait for due drives, starts none twice, and reports each failure on its own", async () => {
  const names = ["large", "bad", "small"];
  for (const name of names) {
    addRetired(name, name === "large" ? 5000 : 1);
    addDue(name);
  }
  fails.add("bad");
  const { rooms, forgotten } = makeAll();
  const isGone = (name: string) => !existsSync(paths.retired_room(uid(name)));
  // None of these passes is held up by the large one, which is there after all of them.
  for (let pass = 0; pass < 5; pass++) await rooms.reconcile();
  expect(isGone("large")).toBe(false);
  await vi.waitFor(() => expect([isGone("large"), isGone("small")]).toEqual([true, true]), 30_000);
  await vi.waitFor(() => expect(forgotten.sort()).toEqual([uid("large"), uid("small")]));
  // The passes have retried the failed one.
  expect(erasures.filter((name) => name !== "bad").toSorted()).toEqual(["large", "small"]);
  for (const line of logged) expect(line).toContain(uid("bad"));
  expect(logged.length).toBe(erasures.length - 2);
  expect(getRoom(connection.queries, uid("large"))?.drive_until_at).toBeNull();
  expect(getRoom(connection.queries, uid("bad"))?.drive_until_at).toBe(AT);
  // The next pass tries again.
  fails.clear();
  await rooms.reconcile();
  await vi.waitFor(() => expect(getRoom(connection.queries, uid("bad"))?.drive_until_at).toBeNull());
  rooms.stop();
});
