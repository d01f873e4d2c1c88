/** Requests about a guest's own disk: the host's half of guest-agent/disk-freeze.ts. */
import {
  type DiskFreezeRequest,
  type DiskThawRequest,
  type DiskThawResult,
  FREEZE_MS,
} from "../../../shared/agent-protocol/messages.ts";
import { answerOf } from "./answer.ts";
import type { GuestLink } from "./handshake.ts";

/**
 * When this resolves, all that the guest has written is on its disk, and nothing more is written until the thaw. Rejects if its agent is
 * too old.
 */
export async function freezeDisk(link: GuestLink): Promise<void> {
  const request: DiskFreezeRequest = { method: "disk_freeze" };
  await answerOf(link, request, FREEZE_MS, "freezing the guest's disk");
}

/** Thaws the disk; returns whether it had stayed frozen until now. */
export async function thawDisk(link: GuestLink): Promise<boolean> {
  const request: DiskThawRequest = { method: "disk_thaw" };
  const answer = (await answerOf(link, request, FREEZE_MS, "thawing the guest's disk")) as Partial<DiskThawResult>;
  return answer.in_time === true;
}
