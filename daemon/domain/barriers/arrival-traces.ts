/** Trace contexts of the arrivals at a barrier, so that each can be linked to the others: in memory, as long as one of them waits. */

import type { TraceContext } from "../../../shared/traceparent.ts";
import type { CallTrace } from "../../core/call/traces.ts";
import type { BarrierRow } from "./table.ts";

const MAX_ARRIVALS = 64;

interface Meeting {
  /** By the arriving agents: a repeated arrival of the same agents replaces their context. */
  arrivals: Map<string, TraceContext>;
  waiting: number;
}

export class Meetings {
  readonly #known = new Map<string, Meeting>();

  /** Returns a function that links the call to the other arrivals up to then; it must be called once, however the wait ends. */
  arrive(
    { room_uid, barrier_id, generation }: Pick<BarrierRow, "room_uid" | "barrier_id" | "generation">,
    agents: readonly string[],
    trace: CallTrace,
  ): () => void {
    const own = trace.isTold ? trace.context : null;
    if (own === null) return () => {};
    const key = `${room_uid} ${barrier_id} ${generation}`;
    const name = agents.join(" ");
    const meeting = this.#known.get(key) ?? { arrivals: new Map(), waiting: 0 };
    this.#known.set(key, meeting);
    meeting.waiting++;
    if (meeting.arrivals.size < MAX_ARRIVALS) meeting.arrivals.set(name, own);
    return () => {
      for (const [other, place] of meeting.arrivals) if (other !== name) trace.link(place);
      if (--meeting.waiting === 0 && this.#known.get(key) === meeting) this.#known.delete(key);
    };
  }
}
