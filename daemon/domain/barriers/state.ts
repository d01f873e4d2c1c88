/**
 * States of a barrier's generation, and the effect of an arrival on it. Pure.
 *
 *     waiting → released | broken | cancelled
 */
import type { BarrierState } from "../../../shared/api/barriers.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { BarrierRow } from "./table.ts";

export const NEXT_STATES = {
  waiting: ["released", "broken", "cancelled"],
  released: [],
  broken: [],
  cancelled: [],
} as const satisfies Record<BarrierState, readonly BarrierState[]>;

/** Generations that are retained per barrier, for agents that query by number whether theirs was released. */
export const KEPT_GENERATIONS = 16;

/** The terms that an arrival gives for the barrier. */
export interface Terms {
  parties?: number | undefined;
  participants?: readonly string[] | undefined;
  arrivals: readonly string[];
  /** Whether `arrivals` were listed, so that their count can be the number of parties. */
  listed: boolean;
}

/** Participants that have not arrived, if participants are named. */
export function missingOf({ participants, arrived }: Pick<BarrierRow, "participants" | "arrived">): string[] {
  const there = new Set(arrived);
  return (participants ?? []).filter((agentId) => !there.has(agentId));
}

/** The parties and participants of the generation that follows `before`. Throws validation_failed. */
export function termsOf(terms: Terms, before: BarrierRow | undefined): Pick<BarrierRow, "parties" | "participants"> {
  const isRepeat = terms.parties === undefined && terms.participants === undefined && !terms.listed;
  if (isRepeat && before) return { parties: before.parties, participants: before.participants };
  const participants = terms.participants ? [...terms.participants] : null;
  const parties = terms.parties ?? participants?.length ?? (terms.listed ? terms.arrivals.length : undefined);
  if (parties === undefined) {
    throw invalid(
      "parties",
      "required",
      "Send parties, participants or arrivals: they set how many arrivals the barrier waits for.",
    );
  }
  if (participants && parties > participants.length) {
    throw invalid(
      "parties",
      "out_of_range",
      `parties is ${parties}, but there are ${participants.length} participants.`,
    );
  }
  return { parties, participants };
}

/** Throws barrier_parties_mismatch unless the arrival's terms match this barrier's. */
export function requireSameTerms(row: BarrierRow, terms: Terms): void {
  const { barrier_id, parties, participants, generation } = row;
  const refuse = (detail: string) => {
    return new ServiceError("barrier_parties_mismatch", { detail, details: { parties, participants, generation } });
  };
  if (terms.parties !== undefined && terms.parties !== parties) {
    throw refuse(`Barrier ${barrier_id} has ${parties} parties, not ${terms.parties}.`);
  }
  const expected = terms.participants && [...terms.participants].sort().join();
  if (expected !== undefined && expected !== [...(participants ?? [])].sort().join()) {
    throw refuse(`Barrier ${barrier_id} has different participants.`);
  }
  const stranger = participants && terms.arrivals.find((agentId) => !participants.includes(agentId));
  if (stranger) throw refuse(`${stranger} is not a participant of barrier ${barrier_id}.`);
}

/** The generation with these arrivals added. Throws barrier_parties_mismatch for too many. */
export function arrive(row: BarrierRow, arrivals: readonly string[], now: string): BarrierRow {
  const arrived = [...new Set([...row.arrived, ...arrivals])];
  if (arrived.length > row.parties) {
    throw new ServiceError("barrier_parties_mismatch", {
      detail: `Barrier ${row.barrier_id} has ${row.parties} parties, but this would make ${arrived.length} arrivals.`,
      details: { parties: row.parties, arrived: row.arrived, generation: row.generation },
    });
  }
  const isComplete = arrived.length === row.parties;
  return { ...row, arrived, ...(isComplete ? { state: "released" as const, ended_at: now } : {}) };
}

/** Throws the error of a generation that is broken or cancelled; returns if it is waiting or was released. */
export function requireWhole(row: BarrierRow): void {
  const { barrier_id, generation, arrived, dead } = row;
  const details = { generation, arrived, missing: missingOf(row) };
  if (row.state === "broken") {
    const detail = `Barrier ${barrier_id} is broken, since these participants are gone: ${dead.join(", ")}.`;
    throw new ServiceError("barrier_broken", { detail, details: { ...details, dead } });
  }
  if (row.state === "cancelled") {
    throw new ServiceError("barrier_cancelled", { detail: `Barrier ${barrier_id} was cancelled.`, details });
  }
}

function invalid(field: string, code: string, message: string): ServiceError {
  return new ServiceError("validation_failed", { detail: message, errors: [{ field, code, message }] });
}
