import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import type { OrgChanges, Orgs } from "../orgs/index.ts";

export interface OAuthDeps {
  database: Database;
  changes: OrgChanges;
  orgs: Pick<Orgs, "callerOfGrant" | "find" | "withUse" | "holds">;
  log: Log;
  /** Public URL by which clients reach the service, without a trailing slash. */
  url(): string;
  /** Hosts for which client metadata documents are accepted; empty: all; null: none. */
  documents: readonly string[] | null;
}
