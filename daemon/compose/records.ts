/** Recorder of events that no call has caused. */

import { now } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { Database } from "../db/transact.ts";
import { type AuditEntry, appendAudit } from "../domain/audit/index.ts";

/** Never throws. */
export type Recorder = (entry: Omit<AuditEntry, "at">) => void;

export function makeRecorder(database: Database, log: Log): Recorder {
  return (entry) => {
    database
      .commit((queries) => appendAudit(queries, { ...entry, at: now() }))
      .catch((error: unknown) => log.error("failed to write an audit record", { error: String(error) }));
  };
}

/** The audit actor for a component of the daemon. */
export const systemActor = (name: string): AuditEntry["actor"] => ({ type: "system", id: name, name });
