import type { OrgId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import type { Directory } from "../orgs/index.ts";

export interface UserDeps {
  database: Database;
  directory: Directory;
  log: Log;
  planOf(orgId: OrgId): string;
  /** Where the web is, without a slash at its end. */
  url(): string;
  /** Keys have ended: what holds on to them is cut. */
  keysEnded(): void;
}
