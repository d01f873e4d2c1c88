/**
 * QEMU job that puts the disk of a running guest directly over its base: it copies the content of the layers in between into the top one,
 * and then changes the backing file in that one's header, in this order. The guest keeps running, and its disk can be opened at any moment.
 * There is one such job at most; it has a name, by which a later daemon finds it, and is gone from QEMU as soon as it has ended.
 */

import { timeoutSignal } from "../../core/clock.ts";
import { DeadlineError, unlessGivenUp } from "../../core/concurrency/published.ts";
import type { Qmp } from "./qmp.ts";

const JOB = "merge-layers";
/** Events may be lost with a daemon's end; so the job is polled at this interval. */
const LOOK_AGAIN_MS = 60_000;
const CANCEL_DEADLINE_MS = 30_000;
/** Node names given by machine.ts and argv.ts: the disk, and each layer that was laid over it. */
const OURS = /^(?:disk|d[0-9a-f]{20})$/;

type Monitor = Pick<Qmp, "execute" | "nextEvent">;

/** A node of QEMU's graph of disks, as QEMU reports it. */
export interface DiskNode {
  "node-name": string;
  drv: string;
  file: string;
}

/** The merge to do. */
export interface Stream {
  /** The node on top. */
  top: string;
  /** The future backing file, as QEMU has opened it, and its name for the header. */
  base: { file: string; backing: string };
  /** 0: as fast as the disk is. */
  bytes_per_second: number;
}

/** Starts it; resolves when it has started. */
export async function beginStream(qmp: Monitor, { top, base, bytes_per_second }: Stream): Promise<void> {
  const node = nodeOf(await diskNodes(qmp), base.file);
  if (node === null) throw new Error("QEMU has not opened the backing file of the guest's disk");
  await qmp.execute("block-stream", {
    "job-id": JOB,
    device: top,
    "base-node": node,
    "backing-file": base.backing,
    speed: bytes_per_second,
    // QEMU 10.0 crashes on a query for its nodes while it keeps an ended job.
    "auto-dismiss": true,
  });
}

/** Whether there is one. */
export async function hasStream(qmp: Monitor): Promise<boolean> {
  const jobs = (await qmp.execute("query-jobs")) as { id: string }[];
  return jobs.some(({ id }) => id === JOB);
}

/**
 * Resolves once there is no job, with the reason of its failure or null; null also if its end was not seen. Rejects with DeadlineError on
 * cancellation; the job continues then.
 */
export async function streamEnded(qmp: Monitor, signal: AbortSignal): Promise<string | null> {
  for (;;) {
    // Listen before the query, so that an end in between is noticed.
    const end = qmp.nextEvent(isEnd, LOOK_AGAIN_MS);
    end.catch(() => {});
    if (!(await hasStream(qmp))) return null;
    try {
      const { event, data } = await unlessGivenUp(signal, end);
      return event === "BLOCK_JOB_CANCELLED"
        ? "it was cancelled"
        : data.error === undefined
          ? null
          : String(data.error);
    } catch (error) {
      if (signal.aborted || !(error instanceof DeadlineError)) throw error;
    }
  }
}

/** Cancels it if it runs; the disk is as before, and copied data stays in the top layer. Returns whether there was one. */
export async function cancelStream(qmp: Monitor): Promise<boolean> {
  if (!(await hasStream(qmp))) return false;
  // It may have ended since.
  await qmp.execute("job-cancel", { id: JOB }).catch(() => {});
  await streamEnded(qmp, timeoutSignal(CANCEL_DEADLINE_MS));
  return true;
}

/** Closes the layers that are no longer below the disk: QEMU has all of them closed when this resolves. */
export async function closeLayers(qmp: Monitor, top: string): Promise<void> {
  let names = spareNodes(await diskNodes(qmp), top);
  while (names.length > 0) {
    const kept: string[] = [];
    for (const name of names) {
      // A layer below another is closed after that.
      const isGone = await qmp.execute("blockdev-del", { "node-name": name }).then(
        () => true,
        () => false,
      );
      if (!isGone) kept.push(name);
    }
    if (kept.length === names.length) return;
    names = kept;
  }
}

/** The node of a layer that QEMU found by the header of the layer above; null if there is no such node. Pure. */
export function nodeOf(nodes: readonly DiskNode[], file: string): string | null {
  return nodes.find((node) => node.drv === "qcow2" && node.file === file)?.["node-name"] ?? null;
}

/** Former disks, and their files; nodes that QEMU found below are closed with them. The top one stays. Pure. */
export function spareNodes(nodes: readonly DiskNode[], top: string): string[] {
  const isSpare = (name: string) => OURS.test(name) && name !== top;
  const names = nodes.map((node) => node["node-name"]).filter((name) => isSpare(name.replace(/-file$/, "")));
  // A file is closed after the node that uses it.
  return names.toSorted((a, b) => Number(a.endsWith("-file")) - Number(b.endsWith("-file")));
}

async function diskNodes(qmp: Monitor): Promise<DiskNode[]> {
  return (await qmp.execute("query-named-block-nodes", { flat: true })) as DiskNode[];
}

function isEnd({ event, data }: { event: string; data: Record<string, unknown> }): boolean {
  return (event === "BLOCK_JOB_COMPLETED" || event === "BLOCK_JOB_CANCELLED") && data.device === JOB;
}
