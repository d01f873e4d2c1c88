import type { OrgId } from "../../../shared/ids.ts";
import type { Holds } from "../../core/holds.ts";
import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import type { Directory } from "../orgs/index.ts";

export interface UserDeps {
  database: Database;
  directory: Directory;
  log: Log;
  /** All that holds on to keys, and to sessions. */
  holds: Holds;
  planOf(orgId: OrgId): string;
  /** Where the web is, without a slash at its end. */
  url(): string;
  /** Called when sessions or keys have ended, and it is on record. */
  onEnded(): void;
}
