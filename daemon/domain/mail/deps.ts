import type { LinkId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import type { MailPlan } from "./plan.ts";

export interface OutboxDeps {
  database: Database;
  /** Database for commits that re-create links. */
  shared: Database;
  log: Log;
  /** Null: no mail is sent. */
  plan: MailPlan | null;
  /** URL of the web application, without a trailing slash. */
  url(): string;
  /** Re-creates the link and returns its path below the service's URL; null if the link is no longer valid. */
  relink(queries: Queries, linkId: LinkId): string | null;
}
