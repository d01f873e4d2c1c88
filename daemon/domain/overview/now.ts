/**
 * The stream room_now: the current state of a room, again after each change. Waits begin and end without a record, so the state is
 * compared a few times a second while a client follows it, once for all clients of a room.
 */
import { roomNow } from "../../../shared/api/live.ts";
import { MOST_WAITED_FOR, MOST_WAITS } from "../../../shared/api/overview.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import type { Bells } from "../../core/bells.ts";
import { at } from "../../core/clock.ts";
import {
  type Bound,
  bind,
  type Caller,
  type EventsReply,
  type KeyCall,
  type StreamEvent,
} from "../../core/operation.ts";
import type { RoomTarget } from "../../core/room-target.ts";
import { ServiceError } from "../../core/service-error.ts";
import { Readers } from "../audit/index.ts";
import type { OverviewDeps } from "./deps.ts";
import { findRoom } from "./find.ts";
import { type Found, gather } from "./gather.ts";
import { looks } from "./looks.ts";
import { changesOf, type RoomState } from "./now-changes.ts";
import { maySee } from "./sight.ts";
import { cyclesOf } from "./waits.ts";

/** Below what a person notices; a change is told within a second also on a busy host. */
const LOOK_MS = 100;
/** At most this share of the time goes into one room, however much waits in it. */
const SHARE = 0.05;
/** A client that reads nothing for so long is disconnected. */
const SLOW_MS = 60_000;
/** The bell that nothing rings: it ends with its room and with the service. */
const BELL = "now";

interface Look {
  at: number;
  tookMs: number;
  found: Found;
}

export function makeNow(deps: OverviewDeps, bells: Bells): Bound {
  const readers = new Readers();
  const newest = new Map<RoomUid, Look>();
  const lookAt = (roomUid: RoomUid): Look => {
    const known = newest.get(roomUid);
    const began = performance.now();
    if (known && began - known.at < Math.max(LOOK_MS, known.tookMs / SHARE)) return known;
    const found = gather(deps, roomUid);
    const look = { at: began, tookMs: performance.now() - began, found };
    newest.set(roomUid, look);
    return look;
  };
  const followers = new Map<RoomUid, number>();
  const enter = (roomUid: RoomUid, by: 1 | -1) => {
    const count = (followers.get(roomUid) ?? 0) + by;
    if (count > 0) followers.set(roomUid, count);
    else {
      followers.delete(roomUid);
      newest.delete(roomUid);
    }
  };

  async function* follow({ caller }: KeyCall, { room_uid }: RoomTarget, waits: boolean, signal: AbortSignal) {
    let before: RoomState | null = null;
    enter(room_uid as RoomUid, 1);
    try {
      while (!signal.aborted) {
        await looks.turn(caller.org_id);
        const { found, tookMs } = lookAt(room_uid as RoomUid);
        const state = stateOf(found, caller);
        const lines = changesOf(before, state);
        before = state;
        if (lines.length > 0) yield lines.map((data): StreamEvent => ({ id: null, data }));
        if (!waits) return;
        const deadlineMs = Math.max(LOOK_MS, tookMs / SHARE);
        await bells.wait(room_uid, { key: BELL, deadlineMs, signal }, () => null);
      }
      if (signal.reason instanceof ServiceError) throw signal.reason;
    } catch (error) {
      const code = error instanceof ServiceError ? error.code : "internal";
      yield [{ id: null, data: { type: "error", code } }];
    } finally {
      enter(room_uid as RoomUid, -1);
    }
  }

  return bind(roomNow, {
    find: (call, params) => findRoom(deps, call, params),
    run: (call, { follow: waits = true }, room) => {
      const gone = new AbortController();
      const cancel = () => gone.abort();
      const signal = AbortSignal.any([call.signal, gone.signal]);
      readers.add(call.caller, signal);
      const events: EventsReply = {
        events: ended(follow(call, room, waits, signal), cancel),
        cancel,
        slow: { ms: SLOW_MS, cut: cancel },
      };
      return { outcome: "ok", events };
    },
  });
}

async function* ended<T>(values: AsyncGenerator<T>, over: () => void): AsyncGenerator<T> {
  try {
    yield* values;
  } finally {
    over();
  }
}

function stateOf({ waits: all, truncated }: Found, caller: Caller): RoomState {
  const seen = all.filter((wait) => maySee(caller, wait));
  const waiting = seen.filter(({ type }) => type !== "command");
  const told = waiting.slice(0, MOST_WAITS);
  const commands = seen
    .filter(({ type }) => type === "command")
    .map(({ agent_id, id, about, since }) => ({ agent_id, exec_id: String(id), command: about, since }));
  const { cycles } = cyclesOf(told, Date.now());
  const waits = told.map(({ needsAll: _, calledAt: __, on, ...rest }) => ({
    ...rest,
    on: on.slice(0, MOST_WAITED_FOR),
  }));
  return {
    type: "now",
    at: at(Date.now()),
    waits,
    commands,
    deadlocks: cycles,
    truncated: truncated || waiting.length > MOST_WAITS,
  };
}
