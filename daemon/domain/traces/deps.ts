import type { Log } from "../../core/log.ts";
import type { TracesPlan } from "./plan.ts";

export interface TracesDeps {
  plan: TracesPlan;
  /** Identifies the daemon in its spans. */
  hostId: string;
  log: Log;
}
