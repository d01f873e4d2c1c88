import type { OrgId } from "../../../shared/ids.ts";
import type { RevocationWatch } from "../../core/call/revocation-watch.ts";
import type { Log } from "../../core/log.ts";
import type { PersonalTable } from "../../db/personal.ts";
import type { Database } from "../../db/transact.ts";
import type { OrgChanges, Plans } from "../orgs/index.ts";
import type { OidcClient } from "./identities/oidc.ts";
import type { OrgEndDeps } from "./members/org-end.ts";
import type { SignUpPlan } from "./sign-up/sign-up.ts";

export interface UserDeps {
  database: Database;
  changes: OrgChanges;
  log: Log;
  /** Everything that depends on keys and sessions. */
  holds: RevocationWatch;
  planOf(orgId: OrgId): string;
  /** URL of the web application, without a trailing slash. */
  url(): string;
  rooms: OrgEndDeps["rooms"];
  /** OpenID Connect issuer of external accounts; null: none. */
  upstream: OidcClient | null;
  /** Limits and credits by plan. */
  plans: Plans;
  signUpPlan: SignUpPlan;
  /** Whether e-mail is sent. */
  hasMail: boolean;
  /** All tables with personal data. */
  personal: readonly PersonalTable[];
  /** Called when sessions or keys have ended, and the audit record is written. */
  onEnded(): void;
}
