/** Fill levels of drives for the meter: noted whenever a drive is measured, written in batches. */
import type { RoomUid } from "../../../../shared/ids.ts";
import { startTimer, stopTimer } from "../../../core/clock.ts";
import type { Log } from "../../../core/log.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { type Consumer, type Meter, USAGE_WRITE_SECONDS } from "./meter.ts";

/** Rooms per write, which takes about 0.3 ms for each. */
const MAX_TOGETHER = 16;

export interface DriveLevelDeps {
  database: Database;
  log: Log;
  meter: Meter;
  /** Within a transaction: the drive's organization and room; null if the room no longer exists. */
  placeOf(queries: Queries, roomUid: RoomUid): Consumer | null;
}

export class DriveLevels {
  readonly #deps: DriveLevelDeps;
  #noted = new Map<RoomUid, number>();
  #timer: Timer | null = null;

  constructor(deps: DriveLevelDeps) {
    this.#deps = deps;
  }

  note(roomUid: RoomUid, usedBytes: number): void {
    this.#noted.set(roomUid, usedBytes);
    this.#timer ??= startTimer(() => void this.settle(), USAGE_WRITE_SECONDS * 1000).unref();
  }

  /** Writes the noted levels. Never rejects: a failed write is noted again. */
  async settle(): Promise<void> {
    stopTimer(this.#timer);
    this.#timer = null;
    const pending = this.#noted;
    if (pending.size === 0) return;
    this.#noted = new Map();
    const { database, log, meter, placeOf } = this.#deps;
    const levels = [...pending];
    for (let from = 0; from < levels.length; from += MAX_TOGETHER) {
      const some = levels.slice(from, from + MAX_TOGETHER);
      const write = (queries: Queries) => {
        for (const [roomUid, usedBytes] of some) {
          const place = placeOf(queries, roomUid);
          if (place) meter.fills(queries, place, usedBytes);
        }
      };
      await database.commit(write, false).catch((error: unknown) => {
        log.error("failed to write the usage of drives", { error: String(error) });
        this.#noted = new Map([...some, ...this.#noted]);
      });
    }
  }
}
