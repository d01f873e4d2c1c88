/** The aside thread of a daemon. */
import type { Log } from "../core/log.ts";
import { AsidePool } from "../host/aside/pool.ts";

export const makeAside = (log: Log): AsidePool =>
  new AsidePool({ start: () => new Worker(new URL("./aside-thread.ts", import.meta.url).href), log });
