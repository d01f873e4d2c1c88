/**
 * Calls in progress per room, by its name: the move of a room waits for the calls that found the room before. A call that its client has
 * not sent completely has no effect yet: the move waits for it shortly, then the call fails with room_moving.
 */

import { startTimer, stopTimer } from "../clock.ts";
import { ServiceError } from "../service-error.ts";

/** Time for calls that may take long, such as starting a sandbox. */
const PATIENCE_MS = 60_000;
/** Time for requests that are still being sent. */
const COMING_MS = 3_000;

interface Room {
  org_id: string;
  room_id: string;
}

/** A call about a room. */
export interface InFlightCall {
  /** Runs the part of a call that waits for client data; the signal is aborted, with the reason, when the wait is over. */
  coming<T>(work: (over: AbortSignal) => Promise<T>): Promise<T>;
  /** It has had its answer. */
  leave(): void;
}

interface UnderWay {
  count: number;
  /** Abort controllers of requests that their clients are still sending. */
  coming: Set<AbortController>;
}

export class InFlightCalls {
  readonly #underWay = new Map<string, UnderWay>();
  readonly #waiting = new Set<() => void>();
  readonly #comingMs: number;

  constructor(comingMs = COMING_MS) {
    this.#comingMs = comingMs;
  }

  enter(room: Room): InFlightCall {
    const key = keyOf(room);
    const calls = this.#underWay.get(key) ?? { count: 0, coming: new Set() };
    this.#underWay.set(key, calls);
    calls.count++;
    return {
      coming: async (work) => {
        const over = new AbortController();
        calls.coming.add(over);
        try {
          return await work(over.signal);
        } finally {
          calls.coming.delete(over);
        }
      },
      leave: () => {
        calls.count--;
        if (calls.count === 0) this.#underWay.delete(key);
        for (const look of this.#waiting) look();
      },
    };
  }

  /** Resolves when at most `most` calls are in progress. Rejects with invalid_state if they take longer than `patienceMs`. */
  async untilDone(room: Room, most: number, patienceMs = PATIENCE_MS): Promise<void> {
    const key = keyOf(room);
    const done = Promise.withResolvers<void>();
    const look = () => {
      if (this.#count(key) <= most) done.resolve();
    };
    const cut = () => {
      const moving = new ServiceError("room_moving", {
        detail: "The room is moving, and the request had not arrived completely.",
      });
      for (const over of this.#underWay.get(key)?.coming ?? []) over.abort(moving);
    };
    // Later calls find that the room is moving.
    const cutting = startTimer(cut, Math.min(this.#comingMs, patienceMs));
    const timer = startTimer(() => done.reject(stillCalled(room, this.#count(key) - most)), patienceMs);
    this.#waiting.add(look);
    look();
    try {
      await done.promise;
    } finally {
      stopTimer(cutting);
      stopTimer(timer);
      this.#waiting.delete(look);
    }
  }

  #count(key: string): number {
    return this.#underWay.get(key)?.count ?? 0;
  }
}

const keyOf = ({ org_id, room_id }: Room) => `${org_id} ${room_id}`;

function stillCalled({ room_id }: Room, count: number): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `${count} calls about room ${room_id} have not finished.`,
    hint: "Retry when fewer calls about the room are in progress.",
    retryAfterSeconds: 5,
  });
}
