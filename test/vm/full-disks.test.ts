/** Disks of the host that are full: nothing is half done, nobody is killed, and there is work again as soon as there is space. */
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, symlinkSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { SHARED_TEMPLATES, type TestDaemon } from "../harness/daemon.ts";
import { remainsOf, withGuests } from "../harness/guests.ts";

/** Gives the directory a small disk of its own. */
function mountSmall(directory: string, options: string): void {
  mkdirSync(directory, { recursive: true });
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", directory]);
  if (status !== 0) throw new Error(`no tmpfs on ${directory}: ${stderr}`);
}

const filler = (directory: string) => join(directory, "filler");

/** Takes all of the disk's space but so much. */
function fill(directory: string, leftBytes = 0): void {
  const file = openSync(filler(directory), "w");
  let taken = 0;
  try {
    for (;;) taken += writeSync(file, Buffer.alloc(4096, 1));
  } catch (error) {
    if (!String(error).includes("ENOSPC")) throw error;
  } finally {
    closeSync(file);
  }
  truncateSync(filler(directory), Math.max(0, taken - leftBytes));
}

const empty = (directory: string) => rmSync(filler(directory), { recursive: true, force: true });

/** Takes all the names that the disk has. */
function takeNames(directory: string): void {
  try {
    for (let n = 0; ; n++) mkdirSync(join(filler(directory), String(n)), { recursive: true });
  } catch (error) {
    if (!String(error).includes("ENOSPC")) throw error;
  }
}

const smallData = {
  prepare: ({ dataDir }: TestDaemon) => {
    mountSmall(dataDir, "size=24m");
    symlinkSync(SHARED_TEMPLATES, join(dataDir, "templates"));
  },
};

withGuests("a full data directory", smallData, (guests) => {
  const sandboxes = "/v1/rooms/full/sandboxes";
  beforeAll(async () => {
    await guests.daemon.room("full");
    await guests.daemon.sandbox("full", "bystander", guests.cid());
  });

  test("with room for a row and none for a guest's disk: it unwinds, says why, and works again", async () => {
    const { daemon } = guests;
    const body = { agent_id: "it", guest_cid: guests.cid(), memory_mib: 256 };
    fill(daemon.dataDir, 160 * 1024);
    const refused = await daemon.api("POST", `${sandboxes}/from-template`, body);
    expect([refused.status, refused.body.code]).toEqual([507, "disk_full"]);
    const { sandbox_id } = refused.body.details;
    const record = await daemon.ok("GET", `${sandboxes}/${sandbox_id}`);
    expect(record).toMatchObject({
      state: "failed",
      status: { reason: "disk_failed", message: expect.stringMatching(/ENOSPC|space/) },
    });
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
    empty(daemon.dataDir);
    expect((await daemon.api("POST", `${sandboxes}/from-template`, body)).status).toBe(201);
    expect(await daemon.sh("full", "it", "hostname")).toBe("it");
    await daemon.ok("DELETE", `${sandboxes}/it`);
    await daemon.ok("DELETE", `${sandboxes}/${sandbox_id}`);
  });

  test("with room for nothing: what cannot be recorded is refused, and nobody is killed", async () => {
    const { daemon } = guests;
    const bootId = await daemon.sh("full", "bystander", "cat /proc/sys/kernel/random/boot_id");
    const before = daemon.leftovers();
    fill(daemon.dataDir);
    const create = { agent_id: "none", guest_cid: guests.cid(), memory_mib: 256 };
    for (const [path, body] of [
      ["/v1/rooms", { room_id: "another" }],
      [`${sandboxes}/from-template`, create],
      ["/v1/rooms/full/drive/write", { path: "f", content: "x".repeat(100_000) }],
    ] as const) {
      const { status, body: problem } = await daemon.api("POST", path, body);
      expect([path, status, problem.code]).toEqual([path, 507, "disk_full"]);
    }
    expect((await daemon.ok("GET", `${sandboxes}/bystander`)).state).toBe("running");
    expect(daemon.leftovers()).toEqual(before);
    empty(daemon.dataDir);
    expect(await daemon.sh("full", "bystander", "cat /proc/sys/kernel/random/boot_id")).toBe(bootId);
    expect((await daemon.api("POST", "/v1/rooms", { room_id: "another" })).status).toBe(201);
    expect((await daemon.api("POST", `${sandboxes}/from-template`, create)).status).toBe(201);
    await daemon.ok("POST", "/v1/rooms/full/drive/write", { path: "f", content: "x".repeat(100_000) });
    expect(await daemon.sh("full", "none", "wc -c </mnt/drive/f")).toBe("100000");
    expect((await daemon.ok("GET", "/v1/orgs/self/audit/verify")).ok).toBe(true);
  });

  test("filled by a guest: its write fails with no space left, and the guest can make room itself", async () => {
    const { daemon } = guests;
    const exec = (command: string) => daemon.api("POST", `${sandboxes}/bystander/exec`, { command });
    // What cannot be recorded is not acknowledged, so this has no answer but that the disk is full.
    const filling = await exec("head -c 100M /dev/zero >/mnt/drive/huge; echo $? >/dev/shm/outcome");
    expect([filling.status, filling.body.code]).toEqual([507, "disk_full"]);
    await exec("rm -f /mnt/drive/huge");
    expect(
      await daemon.sh("full", "bystander", "cat /dev/shm/outcome; echo on >/mnt/drive/on; cat /mnt/drive/on"),
    ).toBe("1\non");
  });
});

for (const { what, size, take } of [
  { what: "space", size: "size=256k", take: (directory: string) => fill(directory) },
  { what: "names", size: "nr_inodes=64", take: takeNames },
]) {
  const prepare = ({ runtimeDir }: TestDaemon) => mountSmall(runtimeDir, size);
  withGuests(`a runtime directory with no ${what} left`, { prepare }, (guests) => {
    test("fails the create, which unwinds, and works again once there is some", async () => {
      const { daemon } = guests;
      await daemon.room("full");
      const path = "/v1/rooms/full/sandboxes";
      const body = { agent_id: "it", guest_cid: guests.cid(), memory_mib: 256 };
      take(daemon.runtimeDir);
      const refused = await daemon.api("POST", `${path}/from-template`, body);
      expect([refused.status, refused.body.code]).toEqual([507, "disk_full"]);
      const { sandbox_id } = refused.body.details;
      expect((await daemon.ok("GET", `${path}/${sandbox_id}`)).status.message).toMatch(/ENOSPC|No space left/);
      expect(remainsOf(daemon, sandbox_id)).toEqual([]);
      empty(daemon.runtimeDir);
      expect((await daemon.api("POST", `${path}/from-template`, body)).status).toBe(201);
      expect(await daemon.sh("full", "it", "hostname")).toBe("it");
      await daemon.ok("DELETE", "/v1/rooms/full?drive=delete");
      expect(daemon.leftovers().filter((line) => !line.startsWith("mount"))).toEqual([]);
    });
  });
}
