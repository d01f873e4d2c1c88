import type { OrgId } from "../../../shared/ids.ts";
import type { Holds } from "../../core/holds.ts";
import type { Log } from "../../core/log.ts";
import type { PersonalTable } from "../../db/personal.ts";
import type { Database } from "../../db/transact.ts";
import type { OrgChanges, Plans } from "../orgs/index.ts";
import type { OrgEndDeps } from "./org-end.ts";
import type { SignUpPlan } from "./sign-up.ts";
import type { Upstream } from "./upstream.ts";

export interface UserDeps {
  database: Database;
  changes: OrgChanges;
  log: Log;
  /** All that holds on to keys, and to sessions. */
  holds: Holds;
  planOf(orgId: OrgId): string;
  /** Where the web is, without a slash at its end. */
  url(): string;
  rooms: OrgEndDeps["rooms"];
  /** Whom to ask of accounts elsewhere; null: nobody. */
  upstream: Upstream | null;
  /** What an organization's plan grants. */
  plans: Plans;
  signUpPlan: SignUpPlan;
  /** Whether letters are sent. */
  hasMail: boolean;
  /** All tables that say something of people. */
  personal: readonly PersonalTable[];
  /** Called when sessions or keys have ended, and it is on record. */
  onEnded(): void;
}
