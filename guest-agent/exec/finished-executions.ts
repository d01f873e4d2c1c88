/**
 * Retention of ended executions: bounds their total size in the guest, and chooses which are evicted first.
 *
 * Each is retained for its full time while all of them fit. Otherwise executions with a generated name and a delivered answer are evicted
 * first; then the oldest.
 */
import {
  KEPT_DISK_BYTES,
  KEPT_EXECUTION_BYTES,
  KEPT_MEMORY_BYTES,
  KEPT_SECONDS,
} from "../../shared/agent-protocol/kept-output.ts";
import type { Execution } from "./execution.ts";

interface Share {
  until: number;
  disk_bytes: number;
  memory_bytes: number;
}

export class FinishedExecutions {
  /** Oldest first. */
  readonly #all = new Map<Execution, Share>();
  readonly #letGo: (execution: Execution) => void;
  #diskBytes = 0;
  #memoryBytes = 0;
  #timer: Timer | undefined;

  /** `letGo` is called for each evicted execution. */
  constructor(letGo: (execution: Execution) => void) {
    this.#letGo = letGo;
  }

  add(execution: Execution): void {
    const { disk_bytes, memory_bytes } = execution.journal.atRest;
    const share = {
      until: performance.now() + KEPT_SECONDS * 1000,
      disk_bytes,
      // A character may take two bytes in memory.
      memory_bytes: memory_bytes + KEPT_EXECUTION_BYTES + 2 * execution.characters,
    };
    this.#all.set(execution, share);
    this.#diskBytes += share.disk_bytes;
    this.#memoryBytes += share.memory_bytes;
    while (this.#diskBytes > KEPT_DISK_BYTES || this.#memoryBytes > KEPT_MEMORY_BYTES) this.#release(this.#first());
    if (!this.#timer) this.#watch();
  }

  remove(execution: Execution): void {
    const share = this.#all.get(execution);
    if (!share) return;
    this.#all.delete(execution);
    if (this.#all.size === 0) this.#rest();
    this.#diskBytes -= share.disk_bytes;
    this.#memoryBytes -= share.memory_bytes;
  }

  #first(): Execution | undefined {
    for (const execution of this.#all.keys()) if (execution.isAnswered) return execution;
    const [oldest] = this.#all.keys();
    return oldest;
  }

  #release(execution: Execution | undefined): void {
    if (!execution) return;
    this.remove(execution);
    this.#letGo(execution);
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Evicts expired executions, now and when the next one expires. */
  #watch(): void {
    this.#rest();
    for (const [execution, { until }] of this.#all) {
      const leftMs = until - performance.now();
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.#watch(), leftMs);
        return;
      }
      this.#release(execution);
    }
  }
}
