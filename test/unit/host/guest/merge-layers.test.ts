/** Merging of layers: when it starts, its rate, and exclusive access to the guest; against a QEMU that has a job and no disk. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { paceOf, Shortener } from "../../../../daemon/host/guest/merge-layers.ts";
import type { GuestParts } from "../../../../daemon/host/guest/steps.ts";
import type { Machine } from "../../../../daemon/host/machine/machine.ts";
import type { QmpEvent } from "../../../../daemon/host/machine/qmp.ts";
import { until } from "../../../harness/guests.ts";

test.each([
  [1, null],
  [16, null],
  [17, { wait_ms: 1000, bytes_per_second: 8 * 1024 ** 2 }],
  [64, { wait_ms: 1000, bytes_per_second: 8 * 1024 ** 2 }],
  // It no longer waits for other work.
  [65, { wait_ms: 0, bytes_per_second: 0 }],
])("%i layers", (layers, pace) => {
  expect(paceOf(layers, 1000)).toEqual(pace);
});

const directory = mkdtempSync(join(tmpdir(), "roomd-layers-"));
afterEach(() => {
  for (const name of readdirSync(directory)) rmSync(join(directory, name));
});

/** The first fields of a disk's header, and the name of its backing file. */
function layDisk(name: string, over: string): void {
  const header = Buffer.alloc(1024);
  header.write("QFI\u00fb", 0, "latin1");
  header.writeBigUInt64BE(512n, 8);
  header.writeUInt32BE(over.length, 16);
  header.write(over, 512);
  writeFileSync(join(directory, name), header);
}

/** This number of layers, the last on top. */
function layAll(count: number): string {
  for (let at = 1; at <= count; at++)
    layDisk(`disk-${at}.qcow2`, at === 1 ? "base/disk.qcow2" : `disk-${at - 1}.qcow2`);
  return `disk-${count}.qcow2`;
}

function guestWith(top: string) {
  const hears: ((event: QmpEvent) => void)[] = [];
  const said: string[] = [];
  const qemu = { streams: false };
  const end = (event: string) => {
    qemu.streams = false;
    for (const hear of hears) hear({ event, data: { device: "merge-layers" } });
  };
  const qmp = {
    execute: async (command: string) => {
      if (!command.startsWith("query")) said.push(command);
      if (command === "query-jobs") return qemu.streams ? [{ id: "merge-layers" }] : [];
      if (command === "query-named-block-nodes") {
        return [{ "node-name": "#b", drv: "qcow2", file: join(directory, "base/disk.qcow2") }];
      }
      if (command === "block-stream") qemu.streams = true;
      if (command === "job-cancel") queueMicrotask(() => end("BLOCK_JOB_CANCELLED"));
      return {};
    },
    nextEvent: (fits: (event: QmpEvent) => boolean) =>
      new Promise((resolve) => hears.push((event) => fits(event) && resolve(event))),
  };
  const machine = { qmp, diskNode: async () => "disk", disk: async () => join(directory, top) } as unknown as Machine;
  const log = { info: () => {}, warn: (_: string, { error }: { error: string }) => said.push(error) };
  const parts = {
    plan: { sandbox_id: "sbx_1", paths: { directory } },
    host: { log: { with: () => log } },
  } as unknown as GuestParts;
  return { shortener: new Shortener(parts, machine), qemu, said, end };
}

test("a few layers are left alone", async () => {
  const { shortener, said } = guestWith(layAll(16));
  shortener.begin();
  await shortener.end();
  expect([said, readdirSync(directory).length]).toEqual([[], 16]);
});

test("very many layers are merged together, and unused ones are removed", async () => {
  const top = layAll(70);
  const { shortener, qemu, said, end } = guestWith(top);
  shortener.begin();
  await until("the block job is running", () => qemu.streams);
  layDisk(top, "base/disk.qcow2");
  end("BLOCK_JOB_COMPLETED");
  await until("the merged layers are removed", () => readdirSync(directory).length === 1);
  await shortener.end();
  expect([readdirSync(directory), said]).toEqual([[top], ["block-stream"]]);
});

test("a merge of a previous daemon is cancelled for exclusive access, and no layer is removed", async () => {
  const { shortener, qemu, said } = guestWith(layAll(20));
  qemu.streams = true;
  shortener.begin();
  await shortener.end();
  expect([qemu.streams, said, readdirSync(directory).length]).toEqual([false, ["job-cancel"], 20]);
});

test("layers merged but not removed by a previous daemon are removed", async () => {
  const top = layAll(20);
  layDisk(top, "base/disk.qcow2");
  const { shortener, said } = guestWith(top);
  shortener.begin();
  await until("the merged layers are removed", () => readdirSync(directory).length === 1);
  await shortener.end();
  expect(said).toEqual([]);
});
