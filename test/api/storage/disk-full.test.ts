/** A host with a full disk: each call reports it or works, no acknowledged write is lost, and free space alone restores the service. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";

const whyNot = process.getuid?.() === 0 ? null : "a small disk can be mounted by root only";
if (whyNot !== null) console.log(`disk_full.test.ts is left out: ${whyNot}`);

const SIZE = 24 * 1024 ** 2;
const DELETED = 20;

describe.skipIf(whyNot !== null)("a disk of 24 MiB", () => {
  let daemon: TestDaemon;
  let filler: string;
  const acknowledged: string[] = [];

  beforeAll(async () => {
    daemon = await TestDaemon.start({
      prepare: ({ dataDir }) => {
        const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${SIZE}`, "roomd-test", dataDir]);
        if (mounted.status !== 0) throw new Error(`mount: ${mounted.stderr}`);
      },
    });
    filler = join(daemon.dataDir, "filler");
    await create("before");
  });
  afterAll(() => daemon.stop());

  const create = async (room_id: string) => {
    const answer = await daemon.api("POST", "/v1/rooms", { room_id });
    if (answer.status === 201) acknowledged.push(room_id);
    return answer;
  };
  const rooms = async () => (await daemon.ok("GET", "/v1/rooms?limit=1000")).items.map(({ room_id }: Json) => room_id);
  const reserveBytes = () => statSync(join(daemon.dataDir, "reserve")).blocks * 512;
  /** To the last block. */
  const fill = () => {
    for (const size of ["64k", "4k"])
      spawnSync("dd", ["if=/dev/zero", `of=${filler}-${size}`, `bs=${size}`], { stdio: "ignore" });
    expect(statfsSync(daemon.dataDir).bavail).toBe(0);
  };

  test("answers 507 without a trace to writes without space, and keeps answering", async () => {
    for (let n = 0; n < DELETED; n++) await create(`deleted-${n}`);
    await daemon.ok("POST", "/v1/rooms/before/drive/write", { path: "deep/a/b/f", content: "x" });
    fill();
    for (let n = 0; n < 20; n++) {
      const { status, body } = await create(`during-${n}`);
      expect({ status, code: body.code }).toEqual({ status: 507, code: "disk_full" });
      expect(body.details).toEqual({ free_bytes: expect.any(Number), floor_bytes: SIZE / 8 });
      expect(JSON.stringify(body)).not.toMatch(/SQLITE|ENOSPC|\/tmp/);
    }
    const write = await daemon.api("POST", "/v1/rooms/before/drive/write", { path: "f", content: "x".repeat(100_000) });
    expect(write).toMatchObject({ status: 507, body: { code: "disk_full" } });
    expect(await daemon.api("PUT", "/v1/rooms/before/drive/files/f", "x".repeat(1_000_000))).toMatchObject({
      status: 507,
    });
    expect(await rooms()).toEqual(acknowledged);
    expect((await daemon.ok("GET", "/v1/rooms/before/drive/list?path=/")).items).toHaveLength(1);
    expect((await daemon.api("GET", "/health")).body.checks).toContainEqual(
      expect.objectContaining({ id: "disk", status: "fail", remedy: expect.stringMatching(/Free space/) }),
    );
  });

  test("deletes on request, with audit records, after any number of reads and refused calls", async () => {
    // More records than the whole reserve has space for, were they all kept.
    const flood = Array.from({ length: 40 }, async () => {
      for (let n = 0; n < 200; n++) expect((await daemon.api("GET", "/v1/rooms/none")).status).toBe(404);
    });
    await Promise.all(flood);
    await daemon.ok("DELETE", "/v1/rooms/before/drive/delete?path=deep&recursive=true");
    for (let n = 0; n < DELETED; n++) {
      await daemon.ok("DELETE", `/v1/rooms/deleted-${n}${n % 2 ? "?drive=delete" : ""}`);
      acknowledged.splice(acknowledged.indexOf(`deleted-${n}`), 1);
    }
    expect(await rooms()).toEqual(acknowledged);
    expect(statfsSync(daemon.dataDir).bavail * 4096).toBeLessThan(SIZE / 8);
    const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?event=room.destroy&outcome=success&limit=1000");
    expect(items).toHaveLength(DELETED);
    expect(reserveBytes()).toBeLessThan(SIZE / 8);
  });

  test("works again once there is space, without leftovers of refused calls", async () => {
    for (const name of readdirSync(daemon.dataDir)) {
      if (name.startsWith("filler")) rmSync(join(daemon.dataDir, name));
    }
    expect((await create("after")).status).toBe(201);
    await vi.waitFor(() => expect(reserveBytes()).toBe(SIZE / 8), 10_000);
    await daemon.ok("POST", "/v1/rooms/before/drive/write", { path: "f", content: "x".repeat(100_000) });
    expect(await rooms()).toEqual(acknowledged);
    expect(readdirSync(join(daemon.dataDir, "rooms"))).toHaveLength(acknowledged.length);
    expect((await daemon.ok("GET", "/v1/orgs/self/audit/verify")).ok).toBe(true);
  });

  test("does not prevent the daemon from stopping and starting", async () => {
    fill();
    expect(await daemon.end("SIGTERM")).toBe(0);
    await daemon.serve();
    expect(await rooms()).toEqual(acknowledged);
  });
});

describe.skipIf(whyNot !== null)("a disk that fills up in the middle of a call", () => {
  let daemon: TestDaemon;
  beforeAll(async () => {
    daemon = await TestDaemon.start({
      prepare: ({ dataDir }) => {
        const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${SIZE}`, "roomd-test", dataDir]);
        if (mounted.status !== 0) throw new Error(`mount: ${mounted.stderr}`);
      },
    });
    await daemon.room("r");
    await daemon.ok("POST", "/v1/rooms/r/drive/write", { path: "log", content: "first\n" });
  });
  afterAll(() => daemon.stop());

  const fillers = () => readdirSync(daemon.dataDir).filter((name) => name.startsWith("filler"));
  const fill = () => {
    const of = join(daemon.dataDir, `filler-${fillers().length}`);
    for (const size of ["64k", "4k"])
      spawnSync("dd", ["if=/dev/zero", `of=${of}-${size}`, `bs=${size}`], { stdio: "ignore" });
  };
  const reserveBytes = () => statSync(join(daemon.dataDir, "reserve")).blocks * 512;

  // At the first its work is still to be done, and then cannot be; at the second all that is missing is its record.
  test.each(["call.claimed", "call.worked"])(
    "at %s refuses the call, which can be repeated with the same Idempotency-Key",
    async (point) => {
      daemon.env[FAULT_VARIABLE] = `${point}=stall`;
      await daemon.restart();
      const append = () =>
        daemon.api(
          "POST",
          "/v1/rooms/r/drive/write",
          { path: "log", content: `${point}\n`, append: true },
          { "idempotency-key": point },
        );
      const stalled = append();
      await until("the daemon is at the fault point", () => daemon.log.includes(`"fault_point":"${point}"`));
      expect((await append()).body.code).toBe("idempotency_in_progress");
      // Until not even the record of a call that did nothing can be written.
      do fill();
      while ((await daemon.api("POST", "/v1/rooms/none/messages", {})).status !== 507);
      process.kill(daemon.pid, "SIGUSR2");
      expect(await stalled).toMatchObject({ status: 507, body: { code: "disk_full" } });
      expect((await append()).body.code).toBe("disk_full");

      for (const name of fillers()) rmSync(join(daemon.dataDir, name));
      await vi.waitFor(() => expect(reserveBytes()).toBe(SIZE / 8), 10_000);
      const answer = await append();
      expect([answer.status, answer.body.code]).toEqual([200, undefined]);
      expect((await append()).headers.get("idempotency-replayed")).toBe("true");
      const { content } = await daemon.ok("GET", "/v1/rooms/r/drive/read?path=log");
      expect(content.split(point)).toHaveLength(2);
    },
  );
});

describe.skipIf(whyNot !== null)("a runtime directory of 8 MiB and 2000 inodes", () => {
  let daemon: TestDaemon;

  beforeAll(async () => {
    daemon = await TestDaemon.start({
      prepare: ({ runtimeDir }) => {
        mkdirSync(runtimeDir);
        const options = "size=8m,nr_inodes=2000";
        const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", options, "roomd-test", runtimeDir]);
        if (mounted.status !== 0) throw new Error(`mount: ${mounted.stderr}`);
      },
    });
  });
  afterAll(() => daemon.stop());

  afterEach(() => rmSync(filler(), { recursive: true, force: true }));

  const check = async () =>
    (await daemon.api("GET", "/health")).body.checks.find(({ id }: Json) => id === "runtime_dir");
  const filler = () => join(daemon.runtimeDir, "filler");
  const takeNames = (count: number) => {
    for (let n = 0; n < count; n++) mkdirSync(join(filler(), String(n)), { recursive: true });
  };

  test.each([
    ["little space", "warn", () => writeFileSync(filler(), Buffer.alloc(5 * 1024 ** 2))],
    ["no space", "fail", () => writeFileSync(filler(), Buffer.alloc(8 * 1024 ** 2 - 48 * 1024))],
    ["few inodes", "warn", () => takeNames(1100)],
    ["no inodes", "fail", () => takeNames(1975)],
  ])("with %s left is reported, with a remedy", async (_what, status, take) => {
    expect(await check()).toMatchObject({ status: "ok", remedy: null });
    take();
    expect(await check()).toMatchObject({ status, remedy: expect.stringContaining("runtime_dir") });
  });
});
