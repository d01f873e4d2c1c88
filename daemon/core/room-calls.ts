/** Owns how many calls are under way about each room, by its name: who moves a room waits for those that found it before. */
import { ServiceError } from "./service-error.ts";

/** What a call may take longer than others, such as the upload of a large file, is waited for so long. */
const PATIENCE_MS = 60_000;

interface Room {
  org_id: string;
  room_id: string;
}

export class RoomCalls {
  readonly #underWay = new Map<string, number>();
  readonly #waiting = new Set<() => void>();

  /** Returns what is to be called once the call has had its answer. */
  enter(room: Room): () => void {
    const key = keyOf(room);
    this.#underWay.set(key, this.#count(key) + 1);
    return () => {
      const left = this.#count(key) - 1;
      if (left === 0) this.#underWay.delete(key);
      else this.#underWay.set(key, left);
      for (const look of this.#waiting) look();
    };
  }

  /** Resolves once there are no more than so many. Rejects with invalid_state where they go on for long. */
  async untilDone(room: Room, most: number, patienceMs = PATIENCE_MS): Promise<void> {
    const key = keyOf(room);
    const done = Promise.withResolvers<void>();
    const look = () => {
      if (this.#count(key) <= most) done.resolve();
    };
    const timer = setTimeout(() => done.reject(stillCalled(room, this.#count(key) - most)), patienceMs);
    this.#waiting.add(look);
    look();
    try {
      await done.promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(look);
    }
  }

  #count(key: string): number {
    return this.#underWay.get(key) ?? 0;
  }
}

const keyOf = ({ org_id, room_id }: Room) => `${org_id} ${room_id}`;

function stillCalled({ room_id }: Room, count: number): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `${count} calls about room ${room_id} have not come to their end.`,
    hint: "Try again when less is asked of it.",
    retryAfterSeconds: 5,
  });
}
