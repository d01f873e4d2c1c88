import type { Log } from "../../core/log.ts";
import type { TracesPlan } from "./plan.ts";

export interface TracesDeps {
  plan: TracesPlan;
  /** Which daemon the spans are of. */
  hostId: string;
  log: Log;
}
