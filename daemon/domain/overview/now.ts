/**
 * The stream room_now: the current state of a room, repeated after each change. A possible change wakes the room's clients; the state is
 * then gathered once for all clients with the same view, and compared with the previous one.
 */
import { roomNow } from "../../../shared/api/overview/live.ts";
import { MAX_WAITED_FOR, MAX_WAITS } from "../../../shared/api/overview/overview.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { untilEnd } from "../../core/call/event-streams.ts";
import {
  type Bound,
  bind,
  type Caller,
  type EventsReply,
  type KeyCall,
  type StreamEvent,
} from "../../core/call/operation.ts";
import type { RoomChanges } from "../../core/call/room-changes.ts";
import { findRoom, type RoomTarget } from "../../core/call/room-target.ts";
import { at, monotonicMs, sleep, wallMs } from "../../core/clock.ts";
import { loopTime, ownerOf, Pieces, type Steps } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import { Readers } from "../audit/index.ts";
import type { OverviewDeps } from "./deps.ts";
import { type Gathered, type GatheredWaits, gather } from "./gather.ts";
import { changesOf, keyOf, type RoomState } from "./now-changes.ts";
import { maySee, visibilityOf } from "./visibility.ts";
import { cyclesOf } from "./waits.ts";

/** Debounce: changes within this time are sent together, since one call causes several. */
const TOGETHER_MS = 10;
/** Minimum interval of updates, however much changes. Too short for a person to notice. */
const LOOK_MS = 100;
/** Maximum share of event-loop time for one room, regardless of its number of waits and clients. */
const SHARE = 0.05;
/** Maximum of names in the waits of one state: a thousand agents that wait for a hundred each are megabytes for every client. */
const MAX_NAMES = 10_000;
/** A client that reads nothing for this time is disconnected. */
const SLOW_MS = 60_000;

interface Look {
  /** The room's change counter before this look. */
  changes: number;
  at: number;
  /** Time of the part common to all clients. */
  tookMs: number;
  /** Per client, which gets its own copy of the state to send. */
  eachMs: number;
  found: GatheredWaits;
  /** Keyed by the caller's view. */
  states: Map<string, Promise<RoomState>>;
}

export function makeNow(deps: OverviewDeps, changes: RoomChanges): Bound {
  const readers = new Readers();
  const newest = new Map<RoomUid, { changes: number; look: Promise<Look> }>();
  const lookAt = (roomUid: RoomUid, pieces: Pieces): Promise<Look> => {
    const known = newest.get(roomUid);
    const count = changes.count(roomUid);
    if (known?.changes === count) return known.look;
    const began = monotonicMs();
    const makeLook = async (): Promise<Look> => {
      const { result: found, tookMs } = await timed(gather(deps, roomUid), pieces);
      return { changes: count, at: began, tookMs, eachMs: 0, found, states: new Map() };
    };
    const look = makeLook();
    newest.set(roomUid, { changes: count, look });
    // Each of its clients fails with it; the next one looks again.
    look.catch(() => newest.delete(roomUid));
    return look;
  };
  const stateIn = (look: Look, caller: Caller, pieces: Pieces): Promise<RoomState> => {
    const sight = visibilityOf(caller);
    const known = look.states.get(sight);
    if (known) return known;
    const made = async (): Promise<RoomState> => {
      const { result: state, tookMs } = await timed(stateOf(look.found, caller), pieces);
      const began = monotonicMs();
      keyOf(state);
      const eachMs = monotonicMs() - began;
      look.eachMs = Math.max(look.eachMs, eachMs);
      look.tookMs += tookMs + eachMs;
      return state;
    };
    const state = made();
    look.states.set(sight, state);
    return state;
  };

  async function* follow({ caller }: KeyCall, { room_uid }: RoomTarget, waits: boolean, signal: AbortSignal) {
    const owner = ownerOf(caller.org_id);
    const pieces = new Pieces(loopTime, owner, roomNow.name);
    let before: RoomState | null = null;
    changes.enter(room_uid);
    try {
      while (!signal.aborted) {
        await pieces.turn();
        const look = await lookAt(room_uid, pieces);
        const state = await stateIn(look, caller, pieces);
        const lines = changesOf(before, state);
        before = state;
        if (lines.length > 0) yield lines.map((data): StreamEvent => ({ id: null, data }));
        if (!waits) return;
        await changes.after(room_uid, look.changes, { owner, signal });
        const costMs = look.tookMs + changes.clients(room_uid) * look.eachMs;
        const pauseMs = look.at + Math.max(LOOK_MS, costMs / SHARE) - monotonicMs();
        if (!signal.aborted) await sleep(Math.max(TOGETHER_MS, pauseMs));
      }
      if (signal.reason instanceof ServiceError) throw signal.reason;
    } catch (error) {
      const code = error instanceof ServiceError ? error.code : "internal";
      yield [{ id: null, data: { type: "error", code } }];
    } finally {
      if (!changes.leave(room_uid)) newest.delete(room_uid);
    }
  }

  return bind(roomNow, {
    find: (call, params) => findRoom(deps, call, params),
    run: (call, { follow: waits = true }, room) => {
      const cancellation = new AbortController();
      const cancel = () => cancellation.abort();
      const signal = AbortSignal.any([call.signal, cancellation.signal]);
      readers.add(call.caller, signal, cancel);
      const events: EventsReply = {
        events: untilEnd(follow(call, room, waits, signal), cancel),
        cancel,
        slow: { ms: SLOW_MS, cut: cancel },
      };
      return { outcome: "ok", events };
    },
  });
}

/** Result of work in pieces, and the time of its steps. */
async function timed<Result>(steps: Steps<Result>, pieces: Pieces): Promise<{ result: Result; tookMs: number }> {
  let tookMs = 0;
  for (;;) {
    const began = monotonicMs();
    const { done, value } = steps.next();
    tookMs += monotonicMs() - began;
    if (done) return { result: value, tookMs };
    const turn = pieces.next();
    if (turn) await turn;
  }
}

function* stateOf({ waits: all, truncated }: GatheredWaits, caller: Caller): Steps<RoomState> {
  const seen = all.filter((wait) => maySee(caller, wait));
  const waiting = seen.filter(({ type }) => type !== "command");
  const inspected = waiting.slice(0, MAX_WAITS);
  const shown = withinNames(inspected);
  const commands = seen
    .filter(({ type }) => type === "command")
    .map(({ agent_id, id, about, since }) => ({ agent_id, exec_id: String(id), command: about, since }));
  const { cycles, isPart } = yield* cyclesOf(inspected, wallMs());
  const waits = shown.map(({ needsAll: _, calledAt: __, on, ...rest }) => ({
    ...rest,
    on: on.slice(0, MAX_WAITED_FOR),
  }));
  return {
    type: "now",
    at: at(wallMs()),
    waits,
    commands,
    deadlocks: cycles,
    truncated: truncated || isPart || waiting.length > shown.length,
  };
}

/** The first waits that together have at most MAX_NAMES names. */
function withinNames(waits: readonly Gathered[]): readonly Gathered[] {
  let names = 0;
  const end = waits.findIndex(({ on }) => {
    names += Math.min(on.length, MAX_WAITED_FOR);
    return names > MAX_NAMES;
  });
  return end === -1 ? waits : waits.slice(0, end);
}
