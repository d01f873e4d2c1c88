/** Guarantee that one guest never runs on two hosts: its saved state is not loaded while its room may belong to another host. */
import { requireHere } from "../../../core/call/room-target.ts";
import type { SandboxDeps } from "../deps.ts";
import type { SandboxRow } from "../table.ts";

/** Throws room_moving. */
export function requireUnmoved({ currentRoom }: Pick<SandboxDeps, "currentRoom">, { room_uid }: SandboxRow): void {
  requireHere(currentRoom(room_uid));
}
