/** Owns where in their traces the arrivals at a barrier are, so that each can be linked to the others; in memory, and of the latest alone. */
import type { TraceContext } from "../../../shared/traceparent.ts";
import type { BarrierRow } from "./table.ts";

const MOST_GENERATIONS = 1024;
const MOST_ARRIVALS = 64;

export class Meetings {
  readonly #known = new Map<string, TraceContext[]>();

  /** What is returned names the others that have arrived by then. */
  arrive(
    { room_uid, barrier_id, generation }: Pick<BarrierRow, "room_uid" | "barrier_id" | "generation">,
    own: TraceContext | null,
  ): () => readonly TraceContext[] {
    if (own === null) return () => [];
    const key = `${room_uid} ${barrier_id} ${generation}`;
    const arrivals = this.#known.get(key) ?? [];
    this.#known.set(key, arrivals);
    if (arrivals.length < MOST_ARRIVALS) arrivals.push(own);
    if (this.#known.size > MOST_GENERATIONS) this.#known.delete(String(this.#known.keys().next().value));
    return () => arrivals.filter(({ span_id }) => span_id !== own.span_id);
  }
}
