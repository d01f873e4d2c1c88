/** The current state of the room whose page is open: waits, deadlocks and running commands, updated live. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { OutputOf } from "../../../shared/api/contract.ts";
import type { roomNow } from "../../../shared/api/overview/live.ts";
import type { RoomRecord } from "../../../shared/api/rooms.ts";
import { part } from "./api.ts";
import { follow, later, type StreamLine } from "./follow.ts";

export type RoomNow = Extract<OutputOf<typeof roomNow>, { type: "now" }>;

/** Null until it is loaded, and for a room that has ended. */
export const now = signal<RoomNow | null>(null);

/** Retry delay after a stream error without a retry hint. */
const AGAIN_MS = 2000;

/** Follows a room's state while its page is open. */
export function useNow(room: Pick<RoomRecord, "room_id" | "room_uid" | "state"> | undefined): void {
  const isActive = room?.state === "active";
  useEffect(() => {
    if (!room || !isActive) return;
    const left = new AbortController();
    void keepFollowing(room.room_id, left.signal);
    return () => {
      left.abort();
      now.value = null;
    };
  }, [room?.room_uid, isActive]);
}

async function keepFollowing(roomId: string, left: AbortSignal): Promise<void> {
  const path = `/v1/rooms/${part(roomId)}/now`;
  const take = (line: StreamLine) => {
    if (!left.aborted && line.type === "now") now.value = line as unknown as RoomNow;
    return false;
  };
  while (!left.aborted) {
    const over = await follow({ path: () => path, take, became: () => {} }, left);
    if (over?.why !== "error") return;
    await later(AGAIN_MS, left);
  }
}
