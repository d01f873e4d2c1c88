/**
 * Which sandboxes would survive a shutdown of the host, according to the records of their guests and the free disk space: `roomd doctor`
 * reports it in advance, and the shutdown uses it.
 */
import type { SandboxState } from "../../../../shared/api/sandboxes.ts";
import type { Paths } from "../../../core/config/paths.ts";
import type { Queries } from "../../../db/client.ts";
import { type GuestRecord, readRecord } from "../../../host/guest/record.ts";
import { savedBytes, whyIneligible } from "../../../host/guest/snapshot-eligibility.ts";
import { LEFT_REASON } from "../health.ts";
import { undestroyed } from "../store.ts";
import type { SandboxRow } from "../table.ts";

const MIB = 1024 ** 2;

/** States with a guest, or with one in a moment, that a shutdown saves. */
export const TO_SAVE: readonly SandboxState[] = [
  ...(["creating", "starting", "running", "pausing", "paused", "hibernating", "resuming"] as const),
];

const ON_THE_WAY_UP: readonly SandboxState[] = ["creating", "starting", "resuming"];

export interface Candidate {
  row: SandboxRow;
  needs_bytes: number;
  /** Reason that it cannot be saved at all; null if it can. */
  unsavable: string | null;
}

export interface ShutdownPlan {
  saved: Candidate[];
  /** With the reason why each would end. */
  lost: { row: SandboxRow; why: string; is_space: boolean }[];
  /** Disk space for the saved ones. */
  needs_bytes: number;
}

/** `spaceBytes`: bytes that may be added to the disk; `recordOf`: for callers that have the records in memory. */
export function shutdownPlanOf(
  queries: Queries,
  paths: Pick<Paths, "sandbox">,
  spaceBytes: number,
  recordOf = (sandboxId: string) => readRecord(paths.sandbox(sandboxId).processes),
): ShutdownPlan {
  const rows = undestroyed(queries).filter(({ state }) => TO_SAVE.includes(state));
  return share(
    rows.map((row) => candidateOf(row, recordOf(row.sandbox_id))),
    spaceBytes,
  );
}

function candidateOf(row: SandboxRow, recorded: GuestRecord | null): Candidate {
  // A starting sandbox does not have all its parts yet.
  if (!recorded?.qemu || ON_THE_WAY_UP.includes(row.state)) {
    return { row, needs_bytes: savedBytes({ qemu: null }, row.memory_mib), unsavable: null };
  }
  const isLeft = row.status_reason === LEFT_REASON;
  return {
    row,
    needs_bytes: savedBytes(recorded, row.memory_mib),
    unsavable: isLeft ? "it is not adopted yet" : whyIneligible(recorded, recorded.virtiofsd !== null),
  };
}

/** Takes the smallest first, so that the maximum number is saved. Pure. */
export function share(candidates: readonly Candidate[], spaceBytes: number): ShutdownPlan {
  const survival: ShutdownPlan = { saved: [], lost: [], needs_bytes: 0 };
  const order = [...candidates].sort(
    (a, b) => a.needs_bytes - b.needs_bytes || (a.row.sandbox_id < b.row.sandbox_id ? -1 : 1),
  );
  for (const candidate of order) {
    const { row, needs_bytes, unsavable } = candidate;
    const left = Math.max(0, spaceBytes - survival.needs_bytes);
    if (unsavable !== null) survival.lost.push({ row, why: unsavable, is_space: false });
    else if (needs_bytes > left) {
      const why = `saving it takes up to ${mib(needs_bytes)} MiB of disk, and ${mib(left)} MiB are left for it`;
      survival.lost.push({ row, why, is_space: true });
    } else {
      survival.saved.push(candidate);
      survival.needs_bytes += needs_bytes;
    }
  }
  return survival;
}

const mib = (bytes: number) => Math.floor(bytes / MIB);
