/** Guests kept to the quota: when a drive is measured, and what becomes of it, with real directories and no guest. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { makeLog } from "../../../daemon/core/log.ts";
import { ServiceError } from "../../../daemon/core/service-error.ts";
import { Quota } from "../../../daemon/drive/quota.ts";
import { Usage } from "../../../daemon/drive/usage.ts";
import { Restraints } from "../../../daemon/host/virtiofs/restrain.ts";
import { RoomFixture } from "./room-fixture.ts";

const LIMIT_ENTRIES = 50;
const MIB = 1024 ** 2;

function watchedRoom(limitBytes = 8 * MIB) {
  const fixture = new RoomFixture({ drive_limit_bytes: limitBytes });
  const seen: string[] = [];
  const deps = { limitEntries: LIMIT_ENTRIES, sharesOf: () => [], kernelUse: () => null, restraints: new Restraints() };
  const usage = new Usage(deps);
  const quota = new Quota({
    ...deps,
    usage,
    rooms: () => [fixture.room],
    onChange: (_room, mode) => seen.push(mode),
    log: makeLog("error", () => {}),
  });
  /** Looks until the drive is in this mode. */
  const until = (mode: string) =>
    vi.waitFor(
      () => {
        quota.look();
        expect(quota.modeOf(fixture.room.room_uid)).toBe(mode);
      },
      { timeout: 15_000, interval: 20 },
    );
  return { fixture, quota, usage, seen, until, [Symbol.dispose]: () => fixture[Symbol.dispose]() };
}

test("a drive over its bytes is stopped, held when it grows all the same, and open again once it is under", async () => {
  using room = watchedRoom();
  const { fixture, until, seen } = room;
  writeFileSync(fixture.path("first"), Buffer.alloc(9 * MIB, 1));
  await until("stopped");
  // So much as may have been under way is no reason.
  writeFileSync(fixture.path("second"), Buffer.alloc(9 * MIB, 1));
  await vi.waitFor(async () => {
    room.quota.look();
    expect((await room.usage.of(fixture.room).current()).used_bytes).toBeGreaterThanOrEqual(18 * MIB);
  }, 15_000);
  expect(seen).toEqual(["stopped"]);
  writeFileSync(fixture.path("third"), Buffer.alloc(70 * MIB, 1));
  await until("held");
  for (const name of ["first", "second", "third"]) rmSync(fixture.path(name));
  await until("open");
  expect(seen).toEqual(["stopped", "held", "open"]);
});

test("names count as bytes do, of whatever kind they are, and so do trees that are too deep to be measured", async () => {
  using room = watchedRoom();
  const { fixture, until, seen } = room;
  for (let n = 0; n < LIMIT_ENTRIES; n++) mkdirSync(fixture.path(`a\n${n}`));
  await until("stopped");
  for (let n = 0; n < LIMIT_ENTRIES; n++) rmSync(fixture.path(`a\n${n}`), { recursive: true });
  await until("open");
  mkdirSync(fixture.path(...Array.from({ length: 300 }, () => "d")), { recursive: true });
  await until("stopped");
  rmSync(fixture.path("d"), { recursive: true });
  await until("open");
  expect(seen).toEqual(["stopped", "open", "stopped", "open"]);
});

test("drive calls make no more names than there may be, replace what there is, and delete", async () => {
  using fixture = new RoomFixture({ limitEntries: 3 });
  const write = (path: string) => fixture.call("fs_write", { room_id: "room", path, content: "x" });
  await write("a");
  await write("b");
  await fixture.call("fs_mkdir", { room_id: "room", path: "c" });
  for (const refused of [write("d"), fixture.call("fs_mkdir", { room_id: "room", path: "d" })]) {
    const error = await refused.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ServiceError);
    expect(error).toMatchObject({ code: "drive_full", options: { details: { limit_entries: 3, entry_count: 3 } } });
  }
  await fixture.call("fs_write", { room_id: "room", path: "a", content: "y", append: true });
  await fixture.call("fs_delete", { room_id: "room", path: "b" });
  await write("d");
});
