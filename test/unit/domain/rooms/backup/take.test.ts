/** A room's backup file: its slot is released if no client reads it, or if one reads too slowly. */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths } from "../../../../../daemon/core/config/paths.ts";
import { RoomFiles } from "../../../../../daemon/domain/rooms/backup/files.ts";
import type { BackedUp } from "../../../../../daemon/domain/rooms/backup/format.ts";
import { streamOf } from "../../../../../daemon/domain/rooms/backup/take.ts";
import { contentIn, entriesIn, makeStoreDirectories } from "../../../../../daemon/host/files/store-places.ts";
import type { OrgId } from "../../../../../shared/ids.ts";

const ORG = "org_1" as OrgId;
const ABOUT: BackedUp = {
  ...{ room_id: "r", labels: {}, ttl_seconds: null, made_at: "2026-11-27T06:00:00.000Z", drive_bytes: 1 },
  ...{ checkpoints: [], left_out: { sandboxes: 0, snapshots: 0, checkpoints: 0, recordings: 0 } },
};
const LONG = { silenceMs: 60_000, slackMs: 60_000, bytesPerSecond: 1024 ** 2 };

let home: string;
let files: RoomFiles;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "taken-"));
  files = new RoomFiles({ paths: makePaths({ data_dir: home, runtime_dir: home }), giveUpSpace: () => false });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function packedFile() {
  const file = await files.begin(ORG);
  const { store, state } = file.place;
  await makeStoreDirectories(store);
  writeFileSync(state, "{}\n");
  writeFileSync(entriesIn(store), "[]\n");
  writeFileSync(contentIn(store, 0), Buffer.alloc(3 * 1024 ** 2, "roomd"));
  return file;
}
const left = () => (existsSync(join(home, "room-files")) ? readdirSync(join(home, "room-files")) : []);

test("a file read to its end is whole, and leaves nothing", async () => {
  const bytes = await new Response(streamOf(await packedFile(), ABOUT, LONG)).bytes();
  expect(bytes.length).toBeGreaterThan(3 * 1024 ** 2);
  expect(left()).toEqual([]);
});

test("an unread file is removed, and its slot is free", async () => {
  const stream = streamOf(await packedFile(), ABOUT, { ...LONG, silenceMs: 20 });
  await expect.poll(left).toEqual([]);
  await expect(new Response(stream).bytes()).rejects.toThrow();
  await files.begin(ORG);
  await files.begin(ORG);
});

test("a file that is read continuously but too slowly is aborted", async () => {
  const reader = streamOf(await packedFile(), ABOUT, { ...LONG, slackMs: 200, bytesPerSecond: 1024 ** 4 }).getReader();
  const slowly = async () => {
    for (;;) {
      if ((await reader.read()).done) return;
      await Bun.sleep(50);
    }
  };
  await expect(slowly()).rejects.toThrow("too slowly");
  await expect.poll(left).toEqual([]);
});
