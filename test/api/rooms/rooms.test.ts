/** Rooms from their making to their end, as clients see them. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../calls.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_DRIVE_RETENTION: "1h" } });
});
afterAll(() => daemon.stop());

const names = (list: Json): string[] => list.items.map((room: Json) => room.room_id);
const driveOf = (room: Json) => join(daemon.dataDir, "rooms", room.room_uid, "drive");

describe("a room", () => {
  test("is created with its directory, record and drive", async () => {
    const before = Date.now();
    const answer = await daemon.api("POST", "/v1/rooms", {
      room_id: "build-42",
      labels: { team: "a" },
      ttl_seconds: 600,
    });
    expect(answer.status).toBe(201);
    expect(answer.headers.get("location")).toBe("/v1/rooms/build-42");
    const room = answer.body;
    expect(room).toMatchObject({
      room_id: "build-42",
      room_uid: expect.stringMatching(/^rom_[0-9A-Z]{26}$/),
      org_id: daemon.orgId,
      state: "active",
      status: { reason: "created", message: expect.stringMatching(/\.$/), last_transition_at: room.created_at },
      labels: { team: "a" },
      sandbox_count: 0,
      drive: { used_bytes: 0, limit_bytes: 10 * 1024 ** 3, file_count: 0 },
      updated_at: room.created_at,
      created_by: { type: "key", id: (await daemon.ok("GET", "/v1/me")).key_id },
      warnings: [],
    });
    expect(room.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Date.parse(room.created_at)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(room.expires_at) - Date.parse(room.created_at)).toBe(600_000);
    expect(await daemon.ok("GET", answer.headers.get("location") ?? "")).toEqual(room);
    expect(readdirSync(driveOf(room))).toEqual([]);
  });

  test("has a unique name among active rooms, also with a hundred concurrent creates", async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => daemon.api("POST", "/v1/rooms", { room_id: "one-only" })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    const refused = answers.filter(({ status }) => status !== 201);
    expect(new Set(refused.map(({ body }) => body.code))).toEqual(new Set(["room_id_in_use"]));
    const made = (await daemon.ok("GET", "/v1/rooms?limit=1000")).items.map((room: Json) => room.room_uid);
    // Refused creations have left no directory.
    expect(readdirSync(join(daemon.dataDir, "rooms")).sort()).toEqual(made.sort());
  });

  test("counts the files and bytes on its drive", async () => {
    await daemon.room("counted");
    for (const path of ["/a", "/b/c"]) {
      await daemon.ok("POST", "/v1/rooms/counted/drive/write", { path, content: "x".repeat(5000) });
    }
    const { drive } = await daemon.ok("GET", "/v1/rooms/counted");
    expect(drive.file_count).toBe(2);
    expect(drive.used_bytes).toBeGreaterThanOrEqual(10_000);
  });
});

describe("the end of a room", () => {
  test("reports its results; then the room is gone, and its drive retained for a while", async () => {
    const room = await daemon.room("ends");
    await daemon.ok("POST", "/v1/rooms/ends/drive/write", { path: "/kept", content: "x" });
    const ended = await daemon.ok("DELETE", "/v1/rooms/ends");
    expect(ended).toEqual({
      room_id: "ends",
      room_uid: room.room_uid,
      state: "destroyed",
      sandboxes_destroyed: [],
      drive: { state: "retained", until_at: expect.any(String) },
      duration_ms: expect.any(Number),
    });
    const untilAt = Date.parse(ended.drive.until_at) - Date.now();
    expect(untilAt).toBeGreaterThan(3_590_000);
    expect(untilAt).toBeLessThanOrEqual(3_600_000);
    for (const [method, path] of [
      ["GET", "/v1/rooms/ends"],
      ["DELETE", "/v1/rooms/ends"],
      ["GET", "/v1/rooms/ends/drive/list"],
      ["GET", "/v1/rooms/ends/sandboxes"],
    ] as const) {
      expect(await daemon.problem(method, path)).toMatchObject({ status: 404, code: "room_not_found" });
    }
    expect(existsSync(driveOf(room))).toBe(false);
    expect(readdirSync(join(daemon.dataDir, "retired", room.room_uid, "drive"))).toEqual(["kept"]);
  });

  test("with drive=delete removes everything", async () => {
    const room = await daemon.room("erased");
    await daemon.ok("POST", "/v1/rooms/erased/drive/write", { path: "/a/b/c", content: "x" });
    expect((await daemon.ok("DELETE", "/v1/rooms/erased?drive=delete")).drive).toEqual({
      state: "deleted",
      until_at: null,
    });
    expect(existsSync(driveOf(room))).toBe(false);
    expect(existsSync(join(daemon.dataDir, "retired", room.room_uid))).toBe(false);
    expect(await daemon.problem("DELETE", "/v1/rooms/erased?drive=burn")).toMatchObject({ status: 404 });
  });

  test("frees its name for another room, with another uid and an empty drive", async () => {
    const first = await daemon.room("again");
    await daemon.ok("POST", "/v1/rooms/again/drive/write", { path: "/old", content: "x" });
    await daemon.ok("DELETE", "/v1/rooms/again");
    const second = await daemon.room("again");
    expect(second.room_uid).not.toBe(first.room_uid);
    expect(second.drive).toMatchObject({ used_bytes: 0, file_count: 0 });
    expect((await daemon.ok("GET", "/v1/rooms/again/drive/list")).items).toEqual([]);
    // The audit of the second has nothing of the first.
    const { items } = await daemon.ok("GET", "/v1/rooms/again/audit");
    expect(new Set(items.map((record: Json) => record.room_uid))).toEqual(new Set([second.room_uid]));
  });

  test("requested many times concurrently happens once", async () => {
    await daemon.room("ended-often");
    const answers = await Promise.all(Array.from({ length: 20 }, () => daemon.api("DELETE", "/v1/rooms/ended-often")));
    const statuses = new Set(answers.map(({ status }) => status));
    expect([...statuses].filter((status) => status !== 200 && status !== 404)).toEqual([]);
    expect(statuses).toContain(200);
    const ended = answers.filter(({ status }) => status === 200).map(({ body }) => body.drive.until_at);
    expect(new Set(ended).size).toBe(1);
  });

  test("is automatic after ttl_seconds, and recorded", async () => {
    const room = await daemon.ok("POST", "/v1/rooms", { room_id: "short", ttl_seconds: 1 });
    await until(
      () => daemon.api("GET", "/v1/rooms/short"),
      ({ status }) => status === 404,
    );
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(room.expires_at));
    const { items } = await until(
      () => daemon.ok("GET", "/v1/orgs/self/audit?event=room.destroyed&limit=1"),
      (page) => page.items[0]?.room_id === "short",
    );
    expect(items[0]).toMatchObject({
      room_uid: room.room_uid,
      source: "reconciler",
      outcome: "success",
      details: { reason: "expired" },
    });
  });

  test("is at the time set by PATCH, counted from the call, or never", async () => {
    const room = await daemon.ok("POST", "/v1/rooms", { room_id: "later", ttl_seconds: 3600, labels: { a: "b" } });
    const never = await daemon.ok("PATCH", "/v1/rooms/later", { expires_in_seconds: null });
    expect(never).toMatchObject({ expires_at: null, labels: { a: "b" } });
    const before = Date.now();
    const soon = await daemon.ok("PATCH", "/v1/rooms/later", { expires_in_seconds: 2, labels: { c: "d" } });
    expect(soon).toMatchObject({ room_uid: room.room_uid, labels: { c: "d" }, state: "active" });
    expect(Date.parse(soon.expires_at)).toBeGreaterThanOrEqual(before + 2000);
    await until(
      () => daemon.api("GET", "/v1/rooms/later"),
      ({ status }) => status === 404,
    );
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(soon.expires_at));
    const notFound = { status: 404, code: "room_not_found" };
    expect(await daemon.problem("PATCH", "/v1/rooms/later", { expires_in_seconds: 60 })).toMatchObject(notFound);
    const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?event=room.updated");
    expect(
      items.filter((record: Json) => record.outcome === "success" && record.room_uid === room.room_uid),
    ).toHaveLength(2);
  });

  test("by ttl_seconds also happens if the daemon was down at that moment", async () => {
    const other = await TestDaemon.start();
    try {
      const room = await other.ok("POST", "/v1/rooms", { room_id: "short", ttl_seconds: 1 });
      await other.ok("POST", "/v1/rooms", { room_id: "long", ttl_seconds: 3600 });
      await other.end("SIGKILL");
      await until(
        () => Date.now(),
        (time) => time > Date.parse(room.expires_at),
      );
      await other.serve();
      await until(
        () => other.api("GET", "/v1/rooms/short"),
        ({ status }) => status === 404,
      );
      expect((await other.ok("GET", "/v1/rooms/long")).state).toBe("active");
    } finally {
      await other.stop();
    }
  });
});

describe("a retained drive", () => {
  test("is erased when its retention ends, also after a restart", async () => {
    const other = await TestDaemon.start({ env: { ROOMD_DRIVE_RETENTION: "1s" } });
    try {
      const retired = (room: Json) => join(other.dataDir, "retired", room.room_uid);
      for (const restart of [false, true]) {
        const room = await other.room("r");
        await other.ok("POST", "/v1/rooms/r/drive/write", { path: "/a/b", content: "x" });
        await other.ok("DELETE", "/v1/rooms/r");
        expect(existsSync(retired(room))).toBe(true);
        if (restart) await other.restart();
        await until(
          () => existsSync(retired(room)),
          (there) => !there,
        );
      }
    } finally {
      await other.stop();
    }
  });
});

describe("the list", () => {
  const made = Array.from({ length: 25 }, (_, index) => `list-${String(index).padStart(2, "0")}`);
  beforeAll(async () => {
    for (const [index, room_id] of made.entries()) {
      await daemon.ok("POST", "/v1/rooms", { room_id, labels: { set: "list", parity: index % 2 ? "odd" : "even" } });
    }
  });

  test.each([
    ["the oldest first", "", made],
    ["the newest first", "&order=desc", made.toReversed()],
  ])("is paged, complete, with each room once, %s", async (_, order, expected) => {
    for (const limit of [1, 7, 24, 25, 26]) {
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page: Json = await daemon.ok(
          "GET",
          `/v1/rooms?label=set:list${order}&limit=${limit}${cursor === null ? "" : `&cursor=${cursor}`}`,
        );
        expect(page.org_id).toBe(daemon.orgId);
        expect(page.items.length).toBeLessThanOrEqual(limit);
        seen.push(...names(page));
        cursor = page.next_cursor;
      } while (cursor !== null);
      expect(seen).toEqual(expected);
    }
  });

  test("continues at its cursor while rooms are created and destroyed", async () => {
    const first = await daemon.ok("GET", "/v1/rooms?label=set:list&limit=10");
    await daemon.ok("DELETE", `/v1/rooms/${made[5]}`);
    await daemon.ok("DELETE", `/v1/rooms/${made[9]}`);
    await daemon.ok("POST", "/v1/rooms", { room_id: "list-late", labels: { set: "list" } });
    const rest = await daemon.ok("GET", `/v1/rooms?label=set:list&limit=100&cursor=${first.next_cursor}`);
    expect(names(rest)).toEqual([...made.slice(10), "list-late"]);
  });

  test("accepts only its own cursors, unedited", async () => {
    const { next_cursor: cursor } = await daemon.ok("GET", "/v1/rooms?limit=2");
    const edited = [
      `${cursor}x`,
      `${cursor}=`,
      `${cursor}.more`,
      ` ${cursor}`,
      cursor.slice(0, -1),
      cursor.slice(1),
      `A${cursor.slice(1)}`,
      cursor.split(".")[0],
      ".",
      "null",
      "0",
    ];
    for (const each of edited) {
      const problem = await daemon.problem("GET", `/v1/rooms?cursor=${encodeURIComponent(each)}`);
      expect({ each, status: problem.status, code: problem.code }).toEqual({
        each,
        status: 400,
        code: "invalid_cursor",
      });
    }
    const elsewhere = (await daemon.ok("GET", "/v1/orgs/self/audit?limit=1")).next_cursor;
    expect((await daemon.problem("GET", `/v1/rooms?cursor=${elsewhere}`)).code).toBe("invalid_cursor");
  });

  test("can be filtered by label and state", async () => {
    const odd = await daemon.ok("GET", "/v1/rooms?label=parity:odd");
    expect(names(odd).every((name) => Number(name.slice(5)) % 2 === 1)).toBe(true);
    expect(names(odd).length).toBeGreaterThan(8);
    for (const none of ["parity:none", "parity:", "nothing:odd", "parity:odd:more", "PARITY:odd"]) {
      expect(names(await daemon.ok("GET", `/v1/rooms?label=${none}`))).toEqual([]);
    }
    await daemon.ok("POST", "/v1/rooms", { room_id: "colons", labels: { url: "http://x:80/'\"%" } });
    const label = encodeURIComponent("url:http://x:80/'\"%");
    expect(names(await daemon.ok("GET", `/v1/rooms?label=${label}`))).toEqual(["colons"]);

    await daemon.ok("DELETE", "/v1/rooms/colons");
    expect(names(await daemon.ok("GET", "/v1/rooms?limit=1000"))).not.toContain("colons");
    expect(names(await daemon.ok("GET", "/v1/rooms?limit=1000&state=active"))).not.toContain("colons");
    const destroyed = await daemon.ok("GET", `/v1/rooms?state=destroyed&label=${label}`);
    expect(destroyed.items).toMatchObject([{ room_id: "colons", state: "destroyed", drive: { used_bytes: 0 } }]);
    expect(names(await daemon.ok("GET", "/v1/rooms?state=destroying"))).toEqual([]);
  });
});

test("directories of rooms that were never completed are removed at a restart; other files stay", async () => {
  const rooms = join(daemon.dataDir, "rooms");
  writeFileSync(join(rooms, "a-file"), "x");
  // Leftovers of a crash between a room's directory and its row, and a directory that an operator has placed there.
  mkdirSync(join(rooms, "rom_unborn", "drive"), { recursive: true });
  mkdirSync(join(rooms, "rom_earlier"));
  mkdirSync(join(rooms, "rom_restored", "drive", "kept"), { recursive: true });
  const known = (await daemon.ok("GET", "/v1/rooms?limit=1000")).items.map(({ room_uid }: Json) => room_uid);
  await daemon.restart();
  expect(readdirSync(rooms).sort()).toEqual([...known, "a-file", "rom_restored"].sort());
  expect((await daemon.ok("GET", "/v1/rooms?limit=1000")).items).toHaveLength(known.length);
});
