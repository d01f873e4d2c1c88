/** A room's directories are synced before its row is written: if the row is on the disk, so are they. */

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { makeStandalone } from "../../../../daemon/cluster/standalone.ts";
import { makePaths } from "../../../../daemon/core/config/paths.ts";
import type { Database } from "../../../../daemon/db/transact.ts";
import { makeCreate } from "../../../../daemon/domain/rooms/create.ts";
import type { RoomDeps } from "../../../../daemon/domain/rooms/deps.ts";
import type { RoomRecords } from "../../../../daemon/domain/rooms/record.ts";

const done = vi.hoisted((): string[] => []);
vi.mock("../../../../daemon/host/files/async-calls.ts", async (original) => {
  const calls = await original<typeof import("../../../../daemon/host/files/async-calls.ts")>();
  const syncDirectory = async (directory: string) => {
    await calls.syncDirectory(directory);
    done.push(directory);
  };
  return { ...calls, syncDirectory };
});

test("the drive, the room's directory and its parent are synced before the row", async () => {
  const root = mkdtempSync(join(tmpdir(), "roomd-durable-"));
  const paths = makePaths({ data_dir: join(root, "data"), runtime_dir: join(root, "run") });
  mkdirSync(paths.rooms, { recursive: true });
  const database = {
    commit: async () => {
      done.push("row");
      return {};
    },
  } as unknown as Database;
  const deps = {
    directory: makeStandalone(database, "host"),
    paths,
    hostId: "host",
    driveLimitBytes: 1,
    driveLimitEntries: 1,
    driveRoot: () => 0,
    driveQuota: { begin: () => {}, renew: () => {}, end: () => {} },
    database,
  } as unknown as RoomDeps;
  const records = { of: async () => ({}) } as unknown as RoomRecords;
  let made = "";
  const create = makeCreate(
    deps,
    records,
    () => undefined,
    ({ room_uid }) => {
      made = room_uid;
    },
  );
  const call = { caller: { org_id: "org_1", key_id: "kid_1", room_ids: null }, audit: { details: {} } } as never;
  await create.run(call, { room_id: "room" }, undefined as never, undefined as never);
  expect(done).toEqual([paths.drive(made), paths.room(made), paths.rooms, "row"]);
  rmSync(root, { recursive: true });
});
