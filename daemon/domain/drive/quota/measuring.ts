/** Measures of one drive: at most one is in progress, and concurrent callers join it (single-flight). It ends with the drive. */
import { statfsSync } from "node:fs";
import { monotonicMs } from "../../../core/clock.ts";
import { loopTime, type OwnerName, Pieces } from "../../../core/loop/index.ts";
import { ifThere } from "../../../host/files/gone.ts";
import type { Measured } from "./measure.ts";

/** Free space of the disk. */
export interface Free {
  bytes: number;
  /** Some file systems have as many names as there is space, and report 0: then only measures count them. */
  names: number;
}

export interface Measurement {
  measured: Measured;
  /** Free space when the measure began. */
  free: Free;
  took_ms: number;
}

/** Measures the drive once, in pieces. */
export type Measure = (pieces: Pieces) => Promise<Measured>;

export class Measuring {
  readonly #directory: string;
  readonly #measure: Measure;
  readonly #owner: OwnerName;
  readonly #end = new AbortController();
  #underWay: Promise<Measurement> | null = null;

  constructor(directory: string, owner: OwnerName, measure: Measure) {
    this.#directory = directory;
    this.#measure = measure;
    this.#owner = owner;
  }

  /** Joins the measure in progress, or starts one. Rejects if the drive is released. */
  join(): Promise<Measurement> {
    this.#underWay ??= this.#once().finally(() => {
      this.#underWay = null;
    });
    return this.#underWay;
  }

  get isEnded(): boolean {
    return this.#end.signal.aborted;
  }

  /** Ends the measure in progress; no other follows. */
  end(): void {
    this.#end.abort();
  }

  async #once(): Promise<Measurement> {
    const startedAt = monotonicMs();
    const free = freeOn(this.#directory);
    const measured = await this.#measure(new Pieces(loopTime, this.#owner, "room.drive", { signal: this.#end.signal }));
    return { measured, free, took_ms: monotonicMs() - startedAt };
  }
}

/** Zero if the drive is absent. */
export function freeOn(directory: string): Free {
  const found = ifThere(() => statfsSync(directory));
  return found ? { bytes: found.bfree * found.bsize, names: found.ffree } : { bytes: 0, names: 0 };
}
