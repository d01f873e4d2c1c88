/** Options of an LRU cache with expiry: entries age by the daemon's clock, and no timer runs. */
import { monotonicMs } from "./clock.ts";

export const AGES = { perf: { now: monotonicMs }, ttlResolution: 0 } as const;
