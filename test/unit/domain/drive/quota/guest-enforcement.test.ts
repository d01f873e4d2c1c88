/** Quota enforcement for guests: when a drive is measured, and the resulting mode, with real directories and no guest. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { makeLog } from "../../../../../daemon/core/log.ts";
import { ServiceError } from "../../../../../daemon/core/service-error.ts";
import { Quota } from "../../../../../daemon/domain/drive/quota/guest-enforcement.ts";
import { Usage } from "../../../../../daemon/domain/drive/quota/usage.ts";
import { eraseDirectory } from "../../../../../daemon/host/files/erase.ts";
import { toRaw } from "../../../../../daemon/host/files/raw-path.ts";
import { Throttle } from "../../../../../daemon/host/virtiofs/throttle.ts";
import { makeNest } from "../../../../harness/nest.ts";
import { RoomFixture } from "../room-fixture.ts";

const LIMIT_ENTRIES = 50;
const MIB = 1024 ** 2;

function watchedRoom(limitBytes = 8 * MIB) {
  const fixture = new RoomFixture({ drive_limit_bytes: limitBytes });
  const seen: string[] = [];
  const deps = {
    limitEntries: LIMIT_ENTRIES,
    sharesOf: () => [],
    kernelUse: () => null,
    onUsed: () => {},
    restraints: new Throttle(),
    roomsOf: () => [[fixture.room]],
    keptOf: () => [fixture.kept],
    capsOf: () => fixture.caps,
    onSoftExceeded: (_: string, facts: { used: number; cap: number }) => fixture.softExceeded.push(facts),
  };
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

test("a drive over its bytes is stopped, held if it still grows, and open again once under", async () => {
  using room = watchedRoom();
  const { fixture, until, seen } = room;
  writeFileSync(fixture.path("first"), Buffer.alloc(9 * MIB, 1));
  await until("stopped");
  // Growth that may be due to writes already in progress is no reason to hold the drive.
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

test("names of any type and at any depth count towards the limit of entries", async () => {
  using room = watchedRoom();
  const { fixture, until, seen } = room;
  for (let n = 0; n < LIMIT_ENTRIES; n++) mkdirSync(fixture.path(`a\n${n}`));
  await until("stopped");
  for (let n = 0; n < LIMIT_ENTRIES; n++) rmSync(fixture.path(`a\n${n}`), { recursive: true });
  await until("open");
  (await makeNest(fixture.directory, 300))[Symbol.dispose]();
  await until("stopped");
  await eraseDirectory(fixture.path("d"), () => false);
  await until("open");
  expect(seen).toEqual(["stopped", "open", "stopped", "open"]);
});

test("bytes at any depth count, and a drive that grows only there is held", async () => {
  using room = watchedRoom();
  const { fixture, until, seen } = room;
  fixture.room.drive_limit_bytes = 8 * MIB;
  const last = await makeNest(fixture.directory, 40);
  for (const [name, megabytes, mode] of [
    ["first", 9, "stopped"],
    ["second", 70, "held"],
  ] as const) {
    await using file = last.newFile(toRaw(name));
    await file.write(Buffer.alloc(megabytes * MIB, 1));
    await until(mode);
  }
  last[Symbol.dispose]();
  expect(seen).toEqual(["stopped", "held"]);
});

test("a drive far above the limit at its first measure is held immediately", async () => {
  using room = watchedRoom();
  writeFileSync(room.fixture.path("huge"), Buffer.alloc(80 * MIB, 1));
  await room.until("held");
  expect(room.seen).toEqual(["held"]);
});

test("drive calls create no names above the limit, but replace and delete", async () => {
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

test("all drives of an organization share its plan: above it calls are refused and guests stopped", async () => {
  using room = watchedRoom();
  const { fixture, until, seen } = room;
  using other = new RoomFixture();
  Object.assign(other.room, { room_uid: "rom_2", room_id: "other" });
  fixture.caps = { soft_cap_bytes: 2 * MIB, hard_cap_bytes: 4 * MIB };
  writeFileSync(other.path("theirs"), Buffer.alloc(3 * MIB, 1));
  writeFileSync(fixture.path("own"), Buffer.alloc(MIB / 2, 1));
  await room.usage.of(other.room).current();
  await until("open");
  // Known from the first look: it is no crossing.
  expect(fixture.softExceeded).toEqual([]);
  writeFileSync(fixture.path("more"), Buffer.alloc(MIB, 1));
  await until("stopped");
  expect(room.usage.ofOrg(fixture.room.org_id).left).toBeLessThanOrEqual(0);
  rmSync(fixture.path("own"));
  rmSync(fixture.path("more"));
  await until("open");
  expect(seen).toEqual(["stopped", "open"]);
});

test("the soft cap is reported once per crossing, for writes of calls and of guests", async () => {
  using fixture = new RoomFixture();
  fixture.caps = { soft_cap_bytes: 2 * MIB, hard_cap_bytes: 4 * MIB };
  const write = async (path: string) =>
    (await fixture.call("fs_write", { path, content: "x".repeat(MIB) })).body as unknown as { warnings?: string[] };
  expect((await write("a")).warnings).toBeUndefined();
  await write("b");
  const over = await write("c");
  expect(over.warnings).toEqual([expect.stringContaining("soft cap")]);
  expect(fixture.softExceeded).toMatchObject([{ cap: 2 * MIB }]);
  await fixture.call("fs_delete", { path: "a" });
  await fixture.call("fs_delete", { path: "b" });
  await write("a");
  await write("b");
  expect(fixture.softExceeded).toHaveLength(2);
});

test("concurrent calls take no more than the plan has, and deleted space can be used again", async () => {
  using fixture = new RoomFixture();
  fixture.caps = { soft_cap_bytes: 0, hard_cap_bytes: 4 * MIB };
  const writes = Array.from({ length: 20 }, (_, n) =>
    fixture.codeOf("fs_write", { path: `f${n}`, content: "x".repeat(MIB / 2) }),
  );
  const codes = await Promise.all(writes);
  const done = codes.filter((code) => code === "done").length;
  expect(done).toBeGreaterThan(4);
  expect(done).toBeLessThanOrEqual(8);
  expect(new Set(codes)).toEqual(new Set(["done", "quota_exceeded"]));
  await fixture.call("fs_delete", { path: `f${codes.indexOf("done")}` });
  expect(await fixture.codeOf("fs_write", { path: "again", content: "x" })).toBe("done");
});
