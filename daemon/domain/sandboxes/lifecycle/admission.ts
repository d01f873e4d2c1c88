/** Admission: whether the host has memory for one more guest, and how many may start concurrently. */

import { totalmem } from "node:os";
import { FairQueue } from "../../../core/concurrency/fair-queue.ts";
import { within } from "../../../core/concurrency/published.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import type { WarmPool } from "../../../host/guest/pool.ts";
import { availableMemoryMib } from "../../../host/usage.ts";
import { memoryPromised } from "../store.ts";

/** Memory of QEMU and virtiofsd in addition to the guest's own. */
const OVERHEAD_MIB = 96;
/** Reserve for the host itself and its page cache: `mib`, or a share of a large host's memory. */
const RESERVE = { mib: 512, share: 1 / 50 } as const;

/** Promised memory that guests do not use yet. */
export interface Growth {
  /** The percentage of it that may be promised again (limits.memory_overcommit). */
  overcommit_percent: number;
  /** Memory of machines that belong neither to a sandbox nor to the pool, in MiB. */
  others_mib: number;
  /** Resident memory of each running guest's QEMU in MiB, by sandbox_id. */
  resident_mib: ReadonlyMap<string, number>;
}

/** Maximum host memory of guests of these sizes. */
export function needOf(memoryMib: readonly number[]): number {
  return memoryMib.reduce((sum, mib) => sum + mib + OVERHEAD_MIB, 0);
}

/** Throws insufficient_capacity with the free figure. */
export function requireMemory(memoryMib: number, free: number): void {
  const need = needOf([memoryMib]);
  if (need <= free) return;
  throw new ServiceError("insufficient_capacity", {
    detail: `The host has ${free} MiB free for guests; this sandbox needs ${need} MiB.`,
    details: { memory_mib_free: free },
    hint: "Destroy a sandbox, or request less memory.",
    retryAfterSeconds: 5,
  });
}

/** For a sandbox that released its memory and is to run again. Throws insufficient_capacity. */
export function requireMemoryAgain(
  queries: Queries,
  { sandbox_id, memory_mib }: { sandbox_id: string; memory_mib: number },
  { resident_mib, ...growth }: Growth,
): void {
  // The sandbox's own promise is the requested amount.
  const others = new Map([...resident_mib, [sandbox_id, Number.POSITIVE_INFINITY] as const]);
  requireMemory(memory_mib, freeMemoryMib(queries, { ...growth, resident_mib: others }));
}

/** Admits a guest by `admit`; if memory is insufficient, pooled machines of other templates are ended to free theirs. */
export async function makingRoom<T>(
  pool: Pick<WarmPool, "makeRoom">,
  memoryMib: number,
  admit: () => Promise<T>,
): Promise<T> {
  // Ending a machine may free less than it was promised.
  while (true) {
    try {
      return await admit();
    } catch (error) {
      const lack = lackOf(error, memoryMib);
      if (lack === null || !(await pool.makeRoom(lack))) throw error;
    }
  }
}

/** Missing memory in MiB if `error` reports insufficient memory; null for other errors. */
function lackOf(error: unknown, memoryMib: number): number | null {
  if (!(error instanceof ServiceError) || error.code !== "insufficient_capacity") return null;
  return needOf([memoryMib]) - Number(error.options.details?.memory_mib_free);
}

/** Memory for new guests: the host's available memory, less the memory that existing guests were promised and do not use yet. */
export function freeMemoryMib(queries: Queries, { overcommit_percent, others_mib, resident_mib }: Growth): number {
  const untouched = memoryPromised(queries)
    .map((guest) => guest.memory_mib + OVERHEAD_MIB - (resident_mib.get(guest.sandbox_id) ?? 0))
    .reduce((sum, mib) => sum + Math.max(0, mib), 0);
  const kept = untouched * (1 - Math.min(100, overcommit_percent) / 100);
  return Math.max(0, Math.floor(availableMemoryMib() - kept - others_mib - reserveMib(totalmem() / 1024 ** 2)));
}

/** The part of a host's memory that is never promised, in MiB. */
export function reserveMib(totalMib: number): number {
  return Math.max(RESERVE.mib, Math.ceil(totalMib * RESERVE.share));
}

/** Semaphore with a fair queue: waiting organizations take turns. */
export class Gate {
  readonly #waiting = new FairQueue<() => void>();
  readonly #places: number;
  #free: number;
  #emptied = Promise.withResolvers<void>();

  constructor(places: number) {
    this.#places = places;
    this.#free = places;
  }

  /** Resolves when the gate is empty, or after `mostMs`. */
  async whenEmpty(mostMs: number): Promise<void> {
    if (this.#free < this.#places) await within(this.#emptied.promise, mostMs, "nobody's turn").catch(() => {});
  }

  /** Rejects with the signal's reason if cancelled before its turn. */
  async through<T>(orgId: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#turn(orgId, signal);
    try {
      return await work();
    } finally {
      this.#handOn();
    }
  }

  /** Resolves with a slot that a finished task hands over. */
  #turn(orgId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.remove(orgId, enter);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      this.#waiting.add(orgId, enter);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  #handOn(): void {
    const enter = this.#waiting.take();
    if (enter) {
      enter();
      return;
    }
    this.#free++;
    if (this.#free < this.#places) return;
    this.#emptied.resolve();
    this.#emptied = Promise.withResolvers<void>();
  }
}
