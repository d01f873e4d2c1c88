/** Measures of a drive: complete whatever guests create, one at a time, and aborted when no caller waits for the result. */
import { linkSync, mkdirSync, readdirSync, readlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { measureTree } from "../../../../../daemon/domain/drive/quota/measure.ts";
import { Usage } from "../../../../../daemon/domain/drive/quota/usage.ts";
import { eraseDirectory } from "../../../../../daemon/host/files/erase.ts";
import { toRaw } from "../../../../../daemon/host/files/raw-path.ts";
import type { OrgId } from "../../../../../shared/ids.ts";
import { makeNest } from "../../../../harness/nest.ts";
import { RoomFixture, sha256 } from "../room-fixture.ts";

const MIB = 1024 * 1024;
let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture({ drive_limit_bytes: 64 * MIB });
});
afterEach(async () => {
  await eraseDirectory(room.directory, () => false);
  room[Symbol.dispose]();
}, 60_000);

/** Walks of the drive that are under way: each has its root open. */
const walks = () =>
  readdirSync("/proc/self/fd").filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === room.directory;
    } catch {
      return false;
    }
  }).length;

async function untilMeasured(usedBytes: number): Promise<void> {
  await expect
    .poll(async () => (await room.drive.measure(room.room)).used_bytes, { timeout: 20_000 })
    .toBeGreaterThanOrEqual(usedBytes);
}

/** A PUT that has sent some bytes and waits; its temporary file. */
async function slowPut(path: string) {
  const more = Promise.withResolvers<Uint8Array>();
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(10)),
    pull: async (controller) => {
      controller.enqueue(await more.promise);
      controller.close();
    },
  });
  const done = room.codeOf("file_put", { path }, { body });
  const temporary = () => readdirSync(room.directory).find((name) => name.startsWith(".roomd-"));
  await expect.poll(temporary).toBeDefined();
  return { done, name: temporary() ?? "", end: (bytes = new Uint8Array(1)) => more.resolve(bytes) };
}

describe("a measure", () => {
  test("counts entries deeper than any path", async () => {
    const levels = 3000;
    const last = await makeNest(room.directory, levels);
    await using file = last.newFile(toRaw("f"));
    await file.write(Buffer.alloc(MIB, 1));
    last[Symbol.dispose]();
    const { used_bytes, file_count, entry_count, is_complete } = await room.drive.measure(room.room);
    expect({ file_count, entry_count, is_complete }).toEqual({
      file_count: 1,
      entry_count: levels + 1,
      is_complete: true,
    });
    expect(used_bytes).toBeGreaterThanOrEqual(MIB);
  }, 60_000);

  test("counts guest files that have the name of an upload, or are links to it", async () => {
    const put = await slowPut("slow");
    mkdirSync(room.path("elsewhere"));
    writeFileSync(room.path("elsewhere", put.name), Buffer.alloc(20 * MIB, 1));
    await untilMeasured(20 * MIB);
    linkSync(room.path(put.name), room.path("linked"));
    writeFileSync(room.path("linked"), Buffer.alloc(10 * MIB, 1));
    await untilMeasured(30 * MIB);
    put.end();
    expect(await put.done).toBe("done");
  });

  test("does not count an upload twice", async () => {
    const put = await slowPut("slow");
    const before = room.drive.measure(room.room);
    expect(await before).toMatchObject({ used_bytes: 0, file_count: 0, entry_count: 0 });
    put.end(new Uint8Array(MIB));
    expect(await put.done).toBe("done");
    expect(await room.drive.measure(room.room)).toMatchObject({ file_count: 1, entry_count: 1 });
  });

  test("stops after a number of entries, and is marked as incomplete", async () => {
    for (let n = 0; n < 30; n++) writeFileSync(room.path(`f${n}`), "");
    expect(await measureTree(room.directory, { most: 20 })).toMatchObject({ entry_count: 20, is_complete: false });
  });
});

describe("one drive", () => {
  test("is measured once at a time, for any calls, and calls that free space invalidate no measure", async () => {
    for (let n = 0; n < 30_000; n++) writeFileSync(room.path(`f${n}`), "");
    for (let n = 0; n < 30; n++) mkdirSync(room.path(`empty${n}`));
    await room.drive.measure(room.room);
    const before = room.measures;
    const begunAt = performance.now();
    const pairs = Array.from({ length: 30 }, async (_, n) => {
      await room.call("fs_delete", { path: `empty${n}`, recursive: true });
      await room.call("fs_mkdir", { path: `new${n}` });
    });
    const moved = Array.from({ length: 20 }, (_, n) =>
      room.call("fs_move", { from: `f${n}`, to: `f${n + 100}`, overwrite: true }),
    );
    await Promise.all([...pairs, ...moved]);
    // No measures but the periodic ones.
    expect(room.measures - before).toBeLessThanOrEqual(1 + (performance.now() - begunAt) / 2000);
    expect(walks()).toBe(0);
    const { entry_count } = await room.drive.measure(room.room);
    expect(entry_count).toBe(30_000 - 20 + 30);
    // Nothing of that has to be measured again.
    expect(await measureTree(room.directory)).toMatchObject({ entry_count });
  }, 120_000);

  test("aborts its measure when it is forgotten", async () => {
    for (let n = 0; n < 30_000; n++) writeFileSync(room.path(`f${n}`), "");
    const measuring = room.drive.measure(room.room);
    await expect.poll(walks).toBeGreaterThan(0);
    room.drive.forget(room.room.room_uid);
    expect((await measuring).entry_count).toBeLessThan(30_000);
    expect(walks()).toBe(0);
  }, 60_000);

  test("limits calls to the known usage while a tree is deleted", async () => {
    writeFileSync(room.path("big"), Buffer.alloc(60 * MIB, 1));
    mkdirSync(room.path("tree"));
    await room.drive.measure(room.room);
    const put = await slowPut("slow");
    await room.call("fs_delete", { path: "tree", recursive: true });
    put.end(new Uint8Array(40 * MIB));
    expect(await put.done).toBe("drive_full");
    expect(readdirSync(room.directory)).toEqual(["big"]);
  });

  test("releases the usage of a deleted tree, immediately and exactly", async () => {
    mkdirSync(room.path("tree/a/b"), { recursive: true });
    for (const name of ["one", "a/two", "a/b/three"]) writeFileSync(room.path("tree", name), Buffer.alloc(MIB, 1));
    writeFileSync(room.path("kept"), Buffer.alloc(MIB, 1));
    await room.drive.measure(room.room);
    await room.call("fs_delete", { path: "tree", recursive: true });
    const left = await room.drive.measure(room.room);
    expect(left).toMatchObject({ used_bytes: MIB, file_count: 1, entry_count: 1 });
    expect(left).toEqual(await measureTree(room.directory));
  });
});

test("concurrent measures of many drives yield to the event loop, and organizations take turns", async () => {
  for (let n = 0; n < 20_000; n++) writeFileSync(room.path(`f${n}`), "");
  const small = join(room.outside, "small");
  mkdirSync(small);
  writeFileSync(join(small, "f"), "");
  const usage = new Usage({
    ...{ limitEntries: 1e6, kernelUse: () => null, onUsed: () => {}, sharesOf: () => [] },
    ...{ roomsOf: () => [], keptOf: () => [], capsOf: () => room.caps, onSoftExceeded: () => {} },
  });
  const ended: string[] = [];
  const large = Array.from({ length: 20 }, async (_, n) => {
    await usage.of({ ...room.room, room_uid: `large-${n}` }).current();
    ended.push("large");
  });
  const other = { room_uid: "small", org_id: "org_2" as OrgId, drive_directory: small };
  const waited = async () => {
    await usage.of(other).current();
    ended.push("small");
  };
  await Promise.all([...large, waited()]);
  expect(ended[0]).toBe("small");
}, 120_000);

describe("appending to a long file", () => {
  const add = (path: string, signal?: AbortSignal) =>
    room.call("fs_write", { path, content: "x", append: true }, {}, signal);

  test("reads up to 64 MiB of it for its digest, and no more", async () => {
    room.room.drive_limit_bytes = 2 ** 40;
    for (const [name, size] of [
      ["short", 64 * MIB - 1],
      ["long", 64 * MIB],
      ["huge", 2 ** 39],
    ] as const) {
      writeFileSync(room.path(name), "");
      truncateSync(room.path(name), size);
      const { body } = await add(name);
      expect(body.size_bytes).toBe(size + 1);
      expect(body.sha256).toEqual(
        name === "short" ? sha256(Buffer.concat([Buffer.alloc(size), Buffer.from("x")])) : null,
      );
    }
  }, 60_000);

  test("is kept if the caller disconnects before it is read", async () => {
    writeFileSync(room.path("log"), Buffer.alloc(60 * MIB, 1));
    const controller = new AbortController();
    const adding = add("log", controller.signal);
    await expect.poll(() => room.drive.measure(room.room)).toBeDefined();
    controller.abort();
    const { body } = await adding;
    expect(body.size_bytes).toBe(60 * MIB + 1);
    expect([null, sha256(Buffer.concat([Buffer.alloc(60 * MIB, 1), Buffer.from("x")]))]).toContain(body.sha256);
  });
});
