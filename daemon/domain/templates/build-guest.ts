/** Guest that a build, or the service, starts for itself: it has an agent and no drive. Nothing of it remains afterwards. */
import { randomBytes, randomInt } from "node:crypto";
import { rm } from "node:fs/promises";
import { newId } from "../../../shared/ids.ts";
import { timeoutSignal } from "../../core/clock.ts";
import { every } from "../../core/concurrency/repeat.ts";
import type { SandboxPaths } from "../../core/config/paths.ts";
import type { GuestHost, GuestImage } from "../../host/guest/plan.ts";
import { pauseGuest, resumeGuest } from "../../host/guest/standby.ts";
import { type Guest, startGuest } from "../../host/guest/start.ts";
import { type GuestRequests, NOTHING_TO_ASK } from "../../host/guest-link/handshake.ts";
import { boundLog } from "../../host/process.ts";

/** Above the range of sandboxes, so that it does not conflict with a sandbox's CID. */
const CID_MIN = 100_000;
const CID_MAX = 1_000_000;
const CID_TRIES = 8;
/** With emulation the start takes most of a minute. */
const AGENT_DEADLINE_MS = 100_000;

function* trialCids(): Iterable<number> {
  for (let tries = 0; tries < CID_TRIES; tries++) yield randomInt(CID_MIN, CID_MAX);
}

export interface BuildGuest extends Pick<Guest, "connection" | "exited"> {
  /** Runs `work` while the guest is paused; the link is a new one afterwards. */
  whileStopped(work: () => Promise<void>): Promise<void>;
  paths: SandboxPaths;
  hostname: string;
}

/** A guest can make its processes log some megabytes per second. */
const BOUND_MS = 1000;

/** Keeps the log of a trial's processes within bounds until the returned function is called. */
export function boundWhile(log: string): () => void {
  // A failure is retried at the next interval.
  return every(
    BOUND_MS,
    () => boundLog(log),
    () => {},
  );
}

/** Starts a guest at `placeOf`, unless `signal` aborts it, runs `work` with it, and ends it. Without `requests` it has no network. */
export async function withBuildGuest<T>(
  host: GuestHost,
  placeOf: (sandboxId: string) => SandboxPaths,
  image: GuestImage,
  requests: GuestRequests | null,
  work: (guest: BuildGuest) => Promise<T>,
  signal: AbortSignal = new AbortController().signal,
): Promise<T> {
  const sandbox_id = newId("sbx");
  const own = placeOf(sandbox_id);
  const hostname = `clone-${randomBytes(4).toString("hex")}`;
  // The guest sends its CID in its hello, and a wrong one is refused there.
  const guest = await startGuest(
    host,
    {
      sandbox_id,
      guest_cid: host.transport.firstFree(trialCids()) ?? CID_MIN,
      memory_mib: image.hardware.base_memory_mib,
      vcpu_count: image.snapshot_vcpus,
      image,
      paths: own,
      drive_directory: null,
      drive_limit_bytes: 0,
      identity: { hostname, machine_id: randomBytes(16).toString("hex"), env: {}, egress: requests !== null },
      requests: requests ?? NOTHING_TO_ASK,
      agent_deadline_ms: AGENT_DEADLINE_MS,
    },
    null,
    () => {},
    signal,
  );
  const stopBounding = boundWhile(own.vmm_log);
  // Sequentially: two concurrent ends would undo the same steps.
  let ending: Promise<void> | null = null;
  const giveUp = () => {
    ending = guest.end().catch(() => {});
  };
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    signal.throwIfAborted();
    const { connection, exited } = guest;
    const whileStopped: BuildGuest["whileStopped"] = async (work) => {
      await pauseGuest(guest);
      try {
        await work();
      } finally {
        await resumeGuest(guest, timeoutSignal(AGENT_DEADLINE_MS));
      }
    };
    return await work({ connection, exited, whileStopped, paths: own, hostname });
  } finally {
    signal.removeEventListener("abort", giveUp);
    stopBounding();
    await ending;
    await guest.end();
    await rm(own.directory, { recursive: true, force: true });
  }
}
