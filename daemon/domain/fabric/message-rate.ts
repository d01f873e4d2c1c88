/** Number of messages that each room took in the last minute. In memory: a restarted daemon starts at 0. */
import type { RoomUid } from "../../../shared/ids.ts";
import { monotonicMs } from "../../core/clock.ts";

const SECONDS = 60;

interface Minute {
  /** Ring buffer: one count per second. */
  counts: Uint32Array;
  /** The last second counted. */
  second: number;
}

export class MessageRate {
  readonly #rooms = new Map<RoomUid, Minute>();

  count(roomUid: RoomUid): void {
    const second = secondNow();
    const minute = this.#rooms.get(roomUid) ?? { counts: new Uint32Array(SECONDS), second };
    this.#rooms.set(roomUid, minute);
    moveTo(minute, second);
    const at = second % SECONDS;
    minute.counts[at] = (minute.counts[at] ?? 0) + 1;
  }

  of(roomUid: RoomUid): number {
    const minute = this.#rooms.get(roomUid);
    if (!minute) return 0;
    moveTo(minute, secondNow());
    const sum = minute.counts.reduce((all, each) => all + each, 0);
    if (sum === 0) this.#rooms.delete(roomUid);
    return sum;
  }

  forget(roomUid: RoomUid): void {
    this.#rooms.delete(roomUid);
  }
}

const secondNow = () => Math.floor(monotonicMs() / 1000);

/** Advances to `second`; seconds without messages are 0. */
function moveTo(minute: Minute, second: number): void {
  const missed = Math.min(SECONDS, second - minute.second);
  for (let each = 1; each <= missed; each++) minute.counts[(minute.second + each) % SECONDS] = 0;
  minute.second = second;
}
