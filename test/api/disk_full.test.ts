/** A host whose disk is full: every call says so or works, nothing that was acknowledged is lost, and space is all it takes. */
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, TestDaemon } from "../harness/daemon.ts";

const whyNot = process.getuid?.() === 0 ? null : "a small disk can be mounted by root only";
if (whyNot !== null) console.log(`disk_full.test.ts is left out: ${whyNot}`);

describe.skipIf(whyNot !== null)("a disk of 12 MiB", () => {
  let daemon: TestDaemon;
  let filler: string;
  const acknowledged: string[] = [];

  beforeAll(async () => {
    daemon = await TestDaemon.start({
      prepare: ({ dataDir }) => {
        const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=12m", "roomd-test", dataDir]);
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
  /** To the last block. */
  const fill = () => {
    for (const size of ["64k", "4k"])
      spawnSync("dd", ["if=/dev/zero", `of=${filler}-${size}`, `bs=${size}`], { stdio: "ignore" });
    expect(statfsSync(daemon.dataDir).bavail).toBe(0);
  };

  test("refuses what it cannot keep with 507, keeps nothing of it, and goes on answering", async () => {
    fill();
    const answers = [];
    for (let n = 0; n < 20; n++) answers.push(await create(`during-${n}`));
    const refused = answers.filter(({ status }) => status !== 201);
    expect(refused.length).toBeGreaterThan(0);
    for (const { status, body } of refused) {
      expect({ status, code: body.code }).toEqual({ status: 507, code: "disk_full" });
      expect(JSON.stringify(body)).not.toMatch(/SQLITE|ENOSPC|\/tmp/);
    }
    const write = await daemon.api("POST", "/v1/rooms/before/drive/write", { path: "f", content: "x".repeat(100_000) });
    expect(write).toMatchObject({ status: 507, body: { code: "disk_full" } });
    expect(await daemon.api("PUT", "/v1/rooms/before/drive/files/f", "x".repeat(1_000_000))).toMatchObject({
      status: 507,
    });
    expect(await rooms()).toEqual(acknowledged);
    expect((await daemon.ok("GET", "/v1/rooms/before/drive/list")).items).toEqual([]);
    expect((await daemon.api("GET", "/health")).body.checks).toContainEqual(
      expect.objectContaining({ id: "disk", status: "fail", remedy: expect.stringMatching(/Free space/) }),
    );
  });

  test("works again once there is space, with nothing left over of what was refused", async () => {
    for (const name of readdirSync(daemon.dataDir)) {
      if (name.startsWith("filler")) rmSync(join(daemon.dataDir, name));
    }
    expect((await create("after")).status).toBe(201);
    await daemon.ok("POST", "/v1/rooms/before/drive/write", { path: "f", content: "x".repeat(100_000) });
    expect(await rooms()).toEqual(acknowledged);
    expect(readdirSync(join(daemon.dataDir, "rooms"))).toHaveLength(acknowledged.length);
    expect((await daemon.ok("GET", "/v1/orgs/self/audit/verify")).ok).toBe(true);
  });

  test("does not keep the daemon from ending in order, nor from starting", async () => {
    fill();
    expect(await daemon.end("SIGTERM")).toBe(0);
    await daemon.serve();
    expect(await rooms()).toEqual(acknowledged);
  });
});
