/** Finds the record of a thing that only the audit still has. */
import type { AuditRecord } from "../../../../shared/api/audit.ts";
import { parsed } from "../../../core/call/operation.ts";
import { ownerOf } from "../../../core/loop/index.ts";
import type { Reads } from "../../../db/readers/pool.ts";
import { readRecord } from "./reads.ts";
import type { RecordKey, Within } from "./search.ts";

export type { RecordKey, Within };

/** The newest matching record; null if absent. Rejects when `left` aborts because the caller has disconnected. */
export async function locateRecord(
  reads: Reads,
  within: Within,
  key: RecordKey,
  left: AbortSignal,
): Promise<AuditRecord | null> {
  return parsed(await reads.read(readRecord, { within, wanted: key }, { owner: ownerOf(within.org_id), signal: left }));
}
