/** Recent use of templates, numbers of processors and memory by sandboxes: the machines that are worth launching ahead. */

import { monotonicMs } from "../../core/clock.ts";
import type { Hardware } from "../../host/machine/spec.ts";

const RECENT_MS = 3_600_000;
/** Sandboxes created within this time count as created together. */
const TOGETHER_MS = 60_000;
/** Each template has pooled machines, with at least the memory that it was saved with. */
const MAX_TEMPLATES = 4;
/** Number of latest moments stored per template. */
const MAX_MOMENTS = 256;

export interface Use {
  template_id: string;
  vcpu_count: number;
}

/** One sandbox. */
export type CreatedSandbox = Use & { memory_mib: number };

export interface MachineUse extends Use {
  /** The most that came together. */
  together: number;
  /** Minimum of the memory that each of them had. */
  least_memory_mib: number;
}

interface Moment {
  at: number;
  memory_mib: number;
}

export class RecentUse {
  /** Moments of each use, the latest last. */
  readonly #used = new Map<string, Use & { moments: Moment[] }>();

  note({ template_id, vcpu_count, memory_mib }: CreatedSandbox): void {
    const key = `${template_id} ${vcpu_count}`;
    const before = this.#used.get(key)?.moments ?? [];
    this.#used.delete(key);
    const moments = [...before.slice(1 - MAX_MOMENTS), { at: monotonicMs(), memory_mib }];
    this.#used.set(key, { template_id, vcpu_count, moments });
  }

  /** The latest first. */
  list(): MachineUse[] {
    const since = monotonicMs() - RECENT_MS;
    for (const [key, { moments }] of this.#used) if ((moments.at(-1)?.at ?? 0) < since) this.#used.delete(key);
    const latest = [...this.#used.values()].reverse();
    const templates = [...new Set(latest.map(({ template_id }) => template_id))].slice(0, MAX_TEMPLATES);
    return latest
      .filter(({ template_id }) => templates.includes(template_id))
      .map(({ moments, ...use }) => {
        const recent = moments.filter(({ at }) => at >= since);
        return {
          ...use,
          together: mostTogether(recent.map(({ at }) => at)),
          least_memory_mib: Math.min(...recent.map(({ memory_mib }) => memory_mib)),
        };
      });
  }
}

/**
 * Memory of machines that are launched ahead for sandboxes with at least `leastMib` each, in MiB: a power of two, so that with whatever
 * sizes a client requests, waiting machines are seldom too small to be of use, and no client learns another's sizes.
 */
export function memoryAhead(
  leastMib: number,
  { base_memory_mib, max_plugged_mib }: Pick<Hardware, "base_memory_mib" | "max_plugged_mib">,
): number {
  const step = 2 ** Math.floor(Math.log2(Math.max(leastMib, 1)));
  return Math.min(Math.max(step, base_memory_mib), base_memory_mib + max_plugged_mib);
}

/** Of moments in their order. */
function mostTogether(moments: readonly number[]): number {
  let most = 0;
  let first = 0;
  for (const [last, moment] of moments.entries()) {
    while (moment - (moments[first] ?? 0) > TOGETHER_MS) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}
