/** Requests about a guest's drive: the host's half of guest-agent/drive. */
import type { DriveLostRequest, DriveMountRequest } from "../../../shared/agent-protocol/messages.ts";
import { answerOf } from "./answer.ts";
import type { GuestLink } from "./handshake.ts";

/** The agent waits 10 s for a plugged device. */
const DEADLINE_MS = 15_000;

/** The guest detaches a drive that no longer answers. Rejects if it cannot, or its agent is too old. */
export async function loseDrive(link: GuestLink): Promise<void> {
  const request: DriveLostRequest = { method: "drive_lost" };
  await answerOf(link, request, DEADLINE_MS, "unmounting the guest's drive");
}

/** Has the guest mount the plugged drive. */
export async function mountDrive(link: GuestLink, drive: Omit<DriveMountRequest, "method">): Promise<void> {
  const request: DriveMountRequest = { method: "drive_mount", ...drive };
  await answerOf(link, request, DEADLINE_MS, "mounting the guest's drive");
}
