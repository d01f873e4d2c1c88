/** Commands to QEMU that merge layers: against a simulated QEMU that has a graph of disks and a job, and nothing else. */
import { expect, test } from "vitest";
import type { QmpEvent } from "../../../../daemon/host/machine/qmp.ts";
import {
  beginStream,
  cancelStream,
  closeLayers,
  type DiskNode,
  hasStream,
  nodeOf,
  spareNodes,
  streamEnded,
} from "../../../../daemon/host/machine/stream.ts";

const D1 = `d${"1".repeat(20)}`;
const D2 = `d${"2".repeat(20)}`;

const layer = (name: string, file: string): DiskNode[] => [
  { "node-name": name, drv: "qcow2", file },
  { "node-name": `${name}-file`, drv: "file", file },
];
/** Each is backed by the next; nodes that QEMU found itself have names of its own. */
const NODES: DiskNode[] = [
  ...layer(D2, "json:{}"),
  ...layer(D1, "json:{}"),
  ...layer("disk", "/s/disk-sbx.qcow2"),
  { "node-name": "#block2", drv: "qcow2", file: "/s/base/disk.qcow2" },
  { "node-name": "#block1", drv: "file", file: "/s/base/disk.qcow2" },
];

class PretendedQemu {
  readonly asked: string[] = [];
  nodes = NODES.map((node) => node["node-name"]);
  job: string | null = null;
  #hears: ((event: QmpEvent) => void)[] = [];

  async execute(command: string, args: Record<string, unknown> = {}): Promise<unknown> {
    if (!command.startsWith("query")) this.asked.push([command, args["node-name"]].join(" ").trim());
    switch (command) {
      case "query-named-block-nodes":
        return NODES.filter((node) => this.nodes.includes(node["node-name"]));
      case "query-jobs":
        return [{ id: "another" }, ...(this.job === null ? [] : [{ id: this.job }])];
      case "block-stream":
        expect(args).toMatchObject({ device: D2, "base-node": "#block2", "backing-file": "base/disk.qcow2", speed: 5 });
        this.job = String(args["job-id"]);
        return {};
      case "job-cancel":
        queueMicrotask(() => this.end("BLOCK_JOB_CANCELLED"));
        return {};
      case "blockdev-del":
        this.#close(String(args["node-name"]));
        return {};
    }
    throw new Error(command);
  }

  nextEvent(fits: (event: QmpEvent) => boolean): Promise<QmpEvent> {
    return new Promise((resolve) => this.#hears.push((event) => fits(event) && resolve(event)));
  }

  end(event = "BLOCK_JOB_COMPLETED", more = {}): void {
    const device = this.job;
    this.job = null;
    for (const hear of this.#hears) hear({ event, data: { device, ...more } });
  }

  /** A node that backs another, or is its file, is busy. */
  #close(name: string): void {
    const users: Record<string, string> = { [D1]: `${D1}-over`, disk: D1, [`${D1}-file`]: D1, "disk-file": "disk" };
    if (name === D2 || this.nodes.includes(users[name] ?? "")) throw new Error(`Node '${name}' is busy`);
    this.nodes = this.nodes.filter((other) => other !== name);
  }
}

const NEVER = new AbortController().signal;
const base = { file: "/s/base/disk.qcow2", backing: "base/disk.qcow2" };

test("the base is identified by its file, and a former disk by its name", () => {
  expect([nodeOf(NODES, base.file), nodeOf(NODES, "/s/base/root.qcow2")]).toEqual(["#block2", null]);
  expect(spareNodes(NODES, D2)).toEqual([D1, "disk", `${D1}-file`, "disk-file"]);
  expect(spareNodes(NODES.slice(4), "disk")).toEqual([]);
});

test("it runs to its end, and unused layers are closed from the top", async () => {
  const qemu = new PretendedQemu();
  expect(await hasStream(qemu)).toBe(false);
  await beginStream(qemu, { top: D2, base, bytes_per_second: 5 });
  expect(await hasStream(qemu)).toBe(true);
  const ended = streamEnded(qemu, NEVER);
  await Bun.sleep(1);
  qemu.end();
  expect(await ended).toBe(null);
  await closeLayers(qemu, D2);
  expect(qemu.nodes).toEqual([D2, `${D2}-file`, "#block2", "#block1"]);
});

test("its failure is reported; an end before the wait reports none", async () => {
  const qemu = new PretendedQemu();
  await beginStream(qemu, { top: D2, base, bytes_per_second: 5 });
  const ended = streamEnded(qemu, NEVER);
  await Bun.sleep(1);
  qemu.end("BLOCK_JOB_COMPLETED", { error: "No space left on device" });
  expect(await ended).toBe("No space left on device");
  expect(await streamEnded(qemu, NEVER)).toBe(null);
});

test("it is cancelled if it is running", async () => {
  const qemu = new PretendedQemu();
  expect(await cancelStream(qemu)).toBe(false);
  await beginStream(qemu, { top: D2, base, bytes_per_second: 5 });
  expect(await cancelStream(qemu)).toBe(true);
  expect(await cancelStream(qemu)).toBe(false);
  expect(qemu.asked).toEqual(["block-stream", "job-cancel"]);
});

test("a wait for it can be aborted; the job continues", async () => {
  const qemu = new PretendedQemu();
  await beginStream(qemu, { top: D2, base, bytes_per_second: 5 });
  await expect(streamEnded(qemu, AbortSignal.timeout(5))).rejects.toThrow("cancelled");
  expect(await hasStream(qemu)).toBe(true);
});

test("layers that are still in use stay open, and retries are limited", async () => {
  const qemu = new PretendedQemu();
  qemu.nodes.push(`${D1}-over`);
  await closeLayers(qemu, D2);
  expect(qemu.nodes).toContain("disk-file");
});
