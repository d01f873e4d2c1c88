/** Owns whether the host has room for one more guest, and how many may be started at once. */
import { ServiceError } from "../core/service-error.ts";
import type { Queries } from "../db/client.ts";
import { availableMemoryMib } from "../host/probe.ts";
import { memoryPromised } from "./store.ts";

/** What QEMU and virtiofsd need beside the guest's own memory. */
const OVERHEAD_MIB = 96;
/** Left for the host itself. */
const RESERVE_MIB = 512;

/** Throws insufficient_capacity with the free figure. */
export function requireMemory(queries: Queries, memoryMib: number): void {
  const free = freeMemoryMib(queries);
  if (memoryMib + OVERHEAD_MIB <= free) return;
  throw new ServiceError("insufficient_capacity", {
    detail: `The host has ${free} MiB free for guests; this sandbox needs ${memoryMib + OVERHEAD_MIB} MiB.`,
    details: { memory_mib_free: free },
    hint: "Destroy a sandbox, or ask for less memory.",
    retryAfterSeconds: 5,
  });
}

/** Memory for new guests: what the host has, less what starting ones were promised and do not use yet. */
export function freeMemoryMib(queries: Queries): number {
  const promised = memoryPromised(queries, ["creating", "starting"]);
  return Math.max(0, availableMemoryMib() - promised - RESERVE_MIB);
}

/** Lets a few through at a time, first come first served. */
export class Gate {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(places: number) {
    this.#free = places;
  }

  async through<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
