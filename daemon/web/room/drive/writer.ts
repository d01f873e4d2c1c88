/** Last writer of a file, as far as it is known: API calls are in the audit log, writes of a sandbox through its mount are not. Pure. */
import type { AuditRecord } from "../../../../shared/api/audit.ts";
import type { DriveEntry } from "../../../../shared/api/drive.ts";

/** The record of a call is written shortly after its change. */
const APART_MS = 2000;

/** Writes in the audit log, the newest first, and whether these are all. */
export interface Writes {
  items: readonly Pick<AuditRecord, "at" | "outcome" | "details" | "agent_id" | "actor">[];
  next_cursor: string | null;
}

/** The newest successful write of each path. */
export function writesByPath<Item extends Writes["items"][number]>(items: readonly Item[]): Map<string, Item> {
  const found = new Map<string, Item>();
  for (const item of items) {
    const { path } = item.details;
    if (item.outcome === "success" && typeof path === "string" && !found.has(path)) found.set(path, item);
  }
  return found;
}

/** The record of the writing call; "sandbox": no call wrote it; null: the writer is no longer known. */
export function writerOf<Item extends Writes["items"][number]>(
  entry: Pick<DriveEntry, "path" | "type" | "modified_at">,
  writes: ReadonlyMap<string, Item>,
  { items, next_cursor }: Writes,
): Item | "sandbox" | null {
  if (entry.type !== "file") return null;
  const changed = Date.parse(entry.modified_at);
  const record = writes.get(entry.path);
  if (record && Math.abs(Date.parse(record.at) - changed) <= APART_MS) return record;
  const oldest = items.at(-1);
  return next_cursor === null || (oldest && Date.parse(oldest.at) <= changed) ? "sandbox" : null;
}
