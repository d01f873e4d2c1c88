/** Loads a room's messages for a page: the newest first, then new ones as they arrive, and older ones on demand. */
import { type Signal, useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Problem } from "../../../../shared/api/errors.ts";
import type { MessageRecord, messageGet } from "../../../../shared/api/fabric.ts";
import type { RoomRecord } from "../../../../shared/api/rooms.ts";
import { get, part, Refused } from "../../data/api.ts";
import { type Loaded, useLoaded } from "../../data/resource.ts";
import { MessageCache } from "./kept.ts";

const PACE = { firstMs: 1000, steadyMs: 1000 };

export interface Messages {
  /** In the room's message order. */
  all: Signal<readonly MessageRecord[]>;
  hasOlder: Signal<boolean>;
  /** Whether the current messages are loaded. */
  newest: Loaded<true>;
  loadOlder(): void;
  /** Loads older messages down to this one. False: it is no longer retained. Throws Refused. */
  reach(messageId: string, over: AbortSignal): Promise<boolean>;
  /** Why older ones were refused. */
  olderProblem: Signal<Problem | null>;
}

export function useMessages({ room_id, room_uid }: RoomRecord): Messages {
  const path = `/v1/rooms/${part(room_id)}`;
  const kept = useMemo(() => new MessageCache(path), [path, room_uid]);
  const newest = useLoaded<true>(
    `messages ${path} ${room_uid}`,
    async (over) => {
      await kept.newer(over);
      return true;
    },
    ({ event }) => event === "message.sent" || event === "message.replied",
    PACE,
  );
  const olderProblem = useSignal<Problem | null>(null);
  const loadOlder = async () => {
    try {
      await kept.older();
      olderProblem.value = null;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      olderProblem.value = error.problem;
    }
  };
  const reach = async (messageId: string, over: AbortSignal) => {
    try {
      const { seq } = await get<typeof messageGet>(`${path}/messages/${part(messageId)}`, {}, over);
      await kept.reach(seq, over);
      return true;
    } catch (error) {
      if (!(error instanceof Refused) || error.problem.code !== "message_not_found") throw error;
      return false;
    }
  };
  const { all, hasOlder } = kept;
  return { all, hasOlder, newest, loadOlder: () => void loadOlder(), reach, olderProblem };
}
