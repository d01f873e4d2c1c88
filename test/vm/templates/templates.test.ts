/** Templates that were spoiled: refused with the reason, and a guest still comes up wherever one can. */
import { closeSync, cpSync, openSync, readSync, truncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { digestFile } from "../../../daemon/host/images/digest.ts";
import { type Json, SHARED_TEMPLATES, type TestDaemon } from "../../harness/daemon.ts";
import { commandLineOf, processesOf, remainsOf, testAlone, until } from "../../harness/guests.ts";
import { ownTemplate } from "../../harness/images/own-template.ts";

async function changeManifest(directory: string, change: (manifest: Json) => void | Promise<void>): Promise<void> {
  const file = Bun.file(join(directory, "manifest.json"));
  const manifest = await file.json();
  await change(manifest);
  await file.write(JSON.stringify(manifest));
}

/** Turns over the last byte that is not zero. */
function flipLastByte(path: string): void {
  const file = openSync(path, "r+");
  const block = Buffer.alloc(1 << 20);
  const from = Bun.file(path).size - block.length;
  const index = block.subarray(0, readSync(file, block, 0, block.length, from)).findLastIndex((byte) => byte !== 0);
  if (index < 0) throw new Error(`${path} ends with nothing but zeros`);
  writeSync(file, Buffer.of((block[index] ?? 0) ^ 0xff), 0, 1, from + index);
  closeSync(file);
}

const create = (daemon: TestDaemon) =>
  daemon.api("POST", "/v1/rooms/spoiled/sandboxes/from-template", { agent_id: "it", guest_cid: 9100, memory_mib: 512 });

/** It comes up without the snapshot, with all that it should have. */
async function expectColdBoot(daemon: TestDaemon): Promise<void> {
  await daemon.room("spoiled");
  const { status, body } = await create(daemon);
  expect([status, body.state, body.start_mode]).toEqual([201, "running", "cold"]);
  expect(daemon.logged({ level: "warn", sandbox_id: body.sandbox_id })).toHaveLength(1);
  console.log(`booted cold in ${body.create_wall_ms} ms`);
  expect(await daemon.sh("spoiled", "it", "hostname; echo here >/mnt/drive/f; cat /mnt/drive/f")).toBe("it\nhere");
  const memory = await daemon.sh("spoiled", "it", "grep -o '[0-9]*' /proc/meminfo | head -n 1");
  expect(Number(memory)).toBeGreaterThan(440 * 1024);
  await daemon.ok("DELETE", "/v1/rooms/spoiled?drive=delete");
  expect(daemon.leftovers()).toEqual([]);
}

/**
 * The refusal is logged, and a guest boots cold, as below; that takes an emulated guest a quarter of a minute, and the test does not wait
 * for it.
 */
async function expectRefusal(daemon: TestDaemon, reason: RegExp): Promise<void> {
  await daemon.room("spoiled");
  const creating = create(daemon);
  await until("the snapshot is refused", () =>
    daemon.logged({ template_id: "default" }).some((entry) => reason.test(entry.reason)),
  );
  await until("a guest boots", () =>
    processesOf(daemon, "qemu").some((pid) => !commandLineOf(pid).includes("-incoming")),
  );
  await daemon.ok("DELETE", "/v1/rooms/spoiled?drive=delete");
  expect((await creating).status).toBe(409);
  expect(daemon.leftovers()).toEqual([]);
}

const spoil = (changed: string, how: (own: string) => void | Promise<void>) => ({
  prepare: (daemon: TestDaemon) => how(ownTemplate(daemon, changed)),
});

testAlone(
  "a snapshot with one flipped byte is refused, and the guest boots cold",
  spoil("memory", (own) => flipLastByte(join(own, "memory"))),
  (daemon) => expectRefusal(daemon, /memory/),
);

testAlone(
  "a snapshot of another QEMU version is refused, and the guest boots cold",
  spoil("", (own) =>
    changeManifest(own, (manifest) => {
      manifest.qemu_version = "8.2.0";
    }),
  ),
  (daemon) => expectRefusal(daemon, /8\.2\.0/),
);

testAlone(
  "a snapshot that passes its checks and fails to load leaves nothing, and the guest boots cold",
  spoil("memory", async (own) => {
    const memory = join(own, "memory");
    truncateSync(memory, 1 << 20);
    await changeManifest(own, async (manifest) => {
      manifest.files.memory.size_bytes = 1 << 20;
      manifest.files.memory.digest = await digestFile(memory);
    });
  }),
  (daemon) => expectColdBoot(daemon),
);

testAlone(
  "a damaged disk image prevents the start of guests, and the answer reports that",
  spoil("root.qcow2", (own) => flipLastByte(join(own, "root.qcow2"))),
  async (daemon) => {
    await daemon.room("spoiled");
    const { status, body } = await create(daemon);
    expect(status).toBeGreaterThanOrEqual(500);
    const { sandbox_id } = body.details;
    const record = await daemon.ok("GET", `/v1/rooms/spoiled/sandboxes/${sandbox_id}`);
    expect(record).toMatchObject({
      state: "failed",
      status: { message: expect.stringContaining("root.qcow2") },
    });
    expect(remainsOf(daemon, sandbox_id)).toEqual([]);
    // Once the image is as it was, guests come up again.
    const own = join(daemon.dataDir, "templates", "default", "current", "root.qcow2");
    cpSync(join(SHARED_TEMPLATES, "default", "current", "root.qcow2"), own);
    const again = await create(daemon);
    expect([again.status, again.body.start_mode]).toEqual([201, "snapshot"]);
  },
);
