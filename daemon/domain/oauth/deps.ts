import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import type { OrgChanges, Orgs } from "../orgs/index.ts";

export interface OAuthDeps {
  database: Database;
  changes: OrgChanges;
  orgs: Pick<Orgs, "callerOfGrant" | "find" | "withUse" | "holds">;
  log: Log;
  /** What we are called: the URL by which clients reach the service, without a slash at its end. */
  url(): string;
  /** Hosts whose applications are known by a document of theirs; empty: all; null: none. */
  documents: readonly string[] | null;
}
