import type { OrgId } from "../../../shared/ids.ts";
import type { Caller } from "../../core/call/operation.ts";
import type { Log } from "../../core/log.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import type { OrgChanges, Plans } from "../orgs/index.ts";

export interface BillingDeps {
  database: Database;
  changes: OrgChanges;
  log: Log;
  plans: Plans;
  /** URL of the web application, without a trailing slash. */
  url(): string;
  /** Throws org_not_found. */
  findOrg(caller: Caller, orgId: string): OrgId;
  /** Requires that the caller may buy, as read in this transaction. Throws insufficient_scope. */
  requireOwner(queries: Queries, caller: Caller): void;
}
