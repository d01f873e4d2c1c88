/**
 * The `barrier_arrive` call. An arrival is stored before the call waits, so that neither a timeout nor a crash withdraws it. A waiting call
 * re-reads its own generation when the barrier's bell rings.
 */
import { barrierArrive, DEFAULT_BARRIER_WAIT_MS } from "../../../shared/api/barriers.ts";
import type { InputOf } from "../../../shared/api/contract.ts";
import type { CallEffects } from "../../core/call/call-effects.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { findRoom, type RoomTarget, requireActive } from "../../core/call/room-target.ts";
import { monotonicMs, now } from "../../core/clock.ts";
import type { AgentWait } from "../../core/concurrency/wait-graph.ts";
import { loopTime, ownerOf, Pieces } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { actingAs } from "../agents/index.ts";
import type { BarrierDeps } from "./deps.ts";
import { arrive, KEPT_GENERATIONS, missingOf, requireSameTerms, requireWhole, type Terms, termsOf } from "./state.ts";
import { bytesOf, findBarrier, removeGenerations, saveBarrier } from "./store.ts";
import type { BarrierRow } from "./table.ts";

type Input = InputOf<typeof barrierArrive>;

/** Name of the bell that wakes the calls that wait at a barrier. */
export const barrierBell = (barrierId: string) => `barrier ${barrierId}`;

export function makeArrive(deps: BarrierDeps): Bound {
  const { agents, bells, database } = deps;
  return bind(barrierArrive, {
    find: (call, params) => findRoom(deps, call, params),
    rules: (input) =>
      input.agent_id !== undefined && input.arrivals !== undefined
        ? [{ field: "arrivals", code: "conflicting_fields", message: "Send either agent_id or arrivals, not both." }]
        : [],
    run: async (call, input, room) => {
      requireActive(room);
      const startedAt = monotonicMs();
      const { room_uid } = room;
      const { barrier_id } = input;
      const terms = arrivalOf(call.caller, input);
      if (terms.arrivals.length === 1) call.audit.agent_id = String(terms.arrivals[0]);
      call.audit.details = { barrier_id, arrivals: terms.arrivals.slice(0, 16) };
      const timeoutMs = input.timeout_ms ?? DEFAULT_BARRIER_WAIT_MS;
      if (timeoutMs > 0) call.audit.details.wait_ms = timeoutMs;
      const wait = timeoutMs === 0 ? null : waitOf(deps, room, barrier_id, terms);
      const release = deps.missing.hold(room_uid, barrier_id);
      let leave = () => {};
      try {
        const pieces = new Pieces(loopTime, ownerOf(call.caller.org_id), "barrier.count");
        const counting = deps.space.count(database.queries, room_uid, pieces);
        if (counting) await counting;
        const kept = await database.commit(
          (queries) => {
            const row = begunBy(queries, room, input, terms, call.work) ?? write(deps, queries, room, input, terms);
            call.work.note({ generation: row.generation });
            if (wait) enter(deps, room, wait, row);
            // Inside the transaction: of two arrivals in one group commit, the first may leave before the second continues.
            leave();
            leave = deps.meetings.arrive(row, terms.arrivals, call.trace);
            return row;
          },
          false,
          ownerOf(call.caller.org_id),
        );
        agents.learn(room_uid, terms.arrivals);
        const { generation } = kept;
        const { arrivals } = terms;
        const place = placeOf(kept, arrivals);
        call.audit.details.generation = generation;
        if (kept.state !== "waiting") bells.ring(room_uid, barrierBell(barrier_id));
        const ended = await bells.wait(
          room_uid,
          {
            key: barrierBell(barrier_id),
            owner: ownerOf(call.caller.org_id),
            deadlineMs: timeoutMs,
            signal: call.signal,
          },
          () => {
            const row = standing(deps, place, arrivals);
            return row.state === "waiting" ? null : row;
          },
        );
        const row = ended ?? standing(deps, place, arrivals);
        requireWhole(row);
        if (row.state === "waiting" && timeoutMs > 0) throw timedOut(row, timeoutMs);
        const { state, parties, arrived } = row;
        const waited_ms = Math.round(monotonicMs() - startedAt);
        const released_at = state === "released" ? row.ended_at : null;
        return {
          outcome: state === "released" ? "released" : "waiting",
          body: { barrier_id, generation, state, parties, arrived, missing: missingOf(row), waited_ms, released_at },
        };
      } finally {
        leave();
        release();
        if (wait) agents.waits.leave(room_uid, wait);
      }
    },
  });
}

/** The arriving agents and their terms. */
function arrivalOf(caller: Parameters<typeof actingAs>[0], input: Input): Terms {
  const { arrivals, parties, participants } = input;
  if (arrivals) for (const agentId of arrivals) actingAs(caller, agentId, "arrivals");
  const named = arrivals ?? [actingAs(caller, input.agent_id, "agent_id")];
  return { parties, participants, arrivals: named, listed: arrivals !== undefined };
}

/** A wait at one generation. */
interface BarrierWait extends AgentWait {
  generation: number;
}

/** The arriving agents wait for the participants that are missing at that time. */
function waitOf(deps: BarrierDeps, { room_uid }: RoomTarget, barrierId: string, terms: Terms): BarrierWait {
  const wait: BarrierWait = {
    agents: terms.arrivals,
    generation: 0,
    since: now(),
    on: () => deps.missing.of(room_uid, barrierId, wait.generation),
    about: () => `barrier ${barrierId} ${wait.generation}`,
    shown: { type: "barrier", id: barrierId },
  };
  return wait;
}

/** Throws deadlock_detected. */
function enter({ agents }: BarrierDeps, { room_uid }: RoomTarget, wait: BarrierWait, row: BarrierRow): void {
  if (row.state !== "waiting") return;
  wait.generation = row.generation;
  agents.waits.enter(room_uid, wait);
}

/** The part of a generation that a wait retains: with all names, thousands of waits would take hundreds of megabytes. */
const placeOf = (row: BarrierRow, arrivals: readonly string[]): BarrierRow =>
  row.state === "waiting" ? { ...row, participants: null, arrived: [...arrivals] } : row;

/**
 * The current row of the generation in which these agents arrived. Throws barrier_cancelled if the room was restored to a checkpoint from
 * before the arrival.
 */
function standing({ bells, database }: BarrierDeps, kept: BarrierRow, arrivals: readonly string[]): BarrierRow {
  const { room_uid, barrier_id, generation } = kept;
  const row = findBarrier(database.queries, room_uid, barrier_id, generation);
  if (row && hasThem(row, arrivals)) return row;
  if (kept.state !== "waiting") return kept;
  bells.requireOpen(room_uid);
  // Of generations that ended long ago the oldest are removed. If the newest number is not higher, a restore has undone this one.
  const newest = findBarrier(database.queries, room_uid, barrier_id)?.generation ?? 0;
  if (newest > generation) return kept;
  throw new ServiceError("barrier_cancelled", {
    detail: `The room was restored to a checkpoint from before this arrival at barrier ${barrier_id}.`,
    details: { generation },
    hint: "Arrive again.",
  });
}

/** Whether these agents count as arrived, as far as it matters: a generation that is over changes no more. */
function hasThem({ state, arrived }: BarrierRow, arrivals: readonly string[]): boolean {
  return state !== "waiting" || arrivals.every((agentId) => arrived.includes(agentId));
}

/**
 * The generation in which an earlier attempt of the same call arrived, without a response: the retry does not arrive in the next one. An
 * arrival that was undone by a restore of the room does not count.
 */
function begunBy(
  queries: Queries,
  { room_uid }: RoomTarget,
  { barrier_id }: Input,
  { arrivals }: Terms,
  { begun }: Pick<CallEffects, "begun">,
): BarrierRow | undefined {
  const row = begun && findBarrier(queries, room_uid, barrier_id, Number(begun.generation));
  return row && hasThem(row, arrivals) ? row : undefined;
}

/** Within a transaction: writes the arrival and returns the updated generation. Throws quota_exceeded. */
function write(
  deps: BarrierDeps,
  queries: Queries,
  room: RoomTarget,
  { barrier_id, generation }: Input,
  terms: Terms,
): BarrierRow {
  const { agents, bells } = deps;
  const { room_uid } = room;
  bells.requireOpen(room_uid);
  for (const agentId of terms.arrivals) agents.requireAlive(room_uid, agentId);
  const newest = findBarrier(queries, room_uid, barrier_id);
  const next = newest?.state === "waiting" ? newest.generation : (newest?.generation ?? 0) + 1;
  if (generation !== undefined && generation !== next) return past(queries, room, barrier_id, generation, terms);
  const row =
    newest?.state === "waiting" ? newest : open(deps, queries, room, barrier_id, next, termsOf(terms, newest), newest);
  requireSameTerms(row, terms);
  const dead = (row.participants ?? []).filter((agentId) => agents.isGone(room_uid, agentId));
  const arrived: BarrierRow =
    dead.length > 0 ? { ...row, state: "broken", dead, ended_at: now() } : arrive(row, terms.arrivals, now());
  saveBarrier(queries, arrived);
  agents.touch(queries, room_uid, terms.arrivals);
  return arrived;
}

/** A generation that is over, for an agent that arrived in it or comes too late. Throws barrier_not_found. */
function past(queries: Queries, room: RoomTarget, barrierId: string, generation: number, terms: Terms): BarrierRow {
  const row = findBarrier(queries, room.room_uid, barrierId, generation);
  if (!row) {
    throw new ServiceError("barrier_not_found", {
      detail: `Barrier ${barrierId} has no known generation ${generation}.`,
    });
  }
  const late = terms.arrivals.find((agentId) => !row.arrived.includes(agentId));
  if (row.state !== "released" || late === undefined) return row;
  throw new ServiceError("barrier_parties_mismatch", {
    detail: `Generation ${generation} of barrier ${barrierId} was released without ${late}.`,
    details: { parties: row.parties, arrived: row.arrived, generation },
  });
}

/** Throws quota_exceeded. */
function open(
  { space }: BarrierDeps,
  queries: Queries,
  { room_uid }: RoomTarget,
  barrier_id: string,
  generation: number,
  terms: Pick<BarrierRow, "parties" | "participants">,
  before: BarrierRow | undefined,
): BarrierRow {
  if (!before) space.addName(queries, room_uid);
  const freed = removeGenerations(queries, room_uid, barrier_id, generation - KEPT_GENERATIONS);
  // Counts the agents that are still to arrive, too: no arrival at an open barrier is refused for space.
  space.change(queries, room_uid, bytesOf(terms) - freed);
  const fresh = { state: "waiting" as const, arrived: [], dead: [], opened_at: now(), ended_at: null };
  return { room_uid, barrier_id, generation, ...terms, ...fresh };
}

function timedOut(row: BarrierRow, timeoutMs: number): ServiceError {
  const { barrier_id, generation, arrived, parties } = row;
  return new ServiceError("barrier_timeout", {
    detail: `${arrived.length} of ${parties} arrived at barrier ${barrier_id} within ${timeoutMs} ms. This arrival stays recorded.`,
    details: { generation, arrived, missing: missingOf(row) },
    hint: "Arrive again with this generation to keep waiting.",
  });
}
