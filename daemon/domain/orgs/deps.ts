import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import type { OrgChanges } from "./org-changes.ts";
import type { UsageDeps } from "./usage/usage.ts";

export interface OrgDeps extends Pick<UsageDeps, "reads" | "meter" | "standing" | "credits"> {
  database: Database;
  changes: OrgChanges;
  /** Whether several hosts share the organizations and keys. */
  isShared: boolean;
  log: Log;
  roomName(roomUid: string): string | null;
}
