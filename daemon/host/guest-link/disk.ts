/** Owns what the host tells a guest about its own disk: the host's half of guest-agent/disk-freeze.ts. */
import { type DiskFreezeRequest, type DiskThawRequest, FREEZE_MS } from "../../../shared/agent-protocol/messages.ts";
import { answerOf } from "./answer.ts";
import type { GuestLink } from "./handshake.ts";

/** All that the guest has written is on its disk when this resolves, and nothing more until it thaws. Rejects where its agent is too old. */
export async function freezeDisk(link: GuestLink): Promise<void> {
  const request: DiskFreezeRequest = { method: "disk_freeze" };
  await answerOf(link, request, FREEZE_MS, "the standstill of the guest's disk");
}

export async function thawDisk(link: GuestLink): Promise<void> {
  const request: DiskThawRequest = { method: "disk_thaw" };
  await answerOf(link, request, FREEZE_MS, "the guest's disk going on");
}
