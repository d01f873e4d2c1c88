import type { LinkId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import type { MailPlan } from "./plan.ts";

export interface OutboxDeps {
  database: Database;
  /** By whose commits links are made anew. */
  shared: Database;
  log: Log;
  /** Null: no mail is sent. */
  plan: MailPlan | null;
  /** Where the web is, without a slash at its end. */
  url(): string;
  /** Makes the link anew and tells where it leads, below the service's URL; null where it is no longer good. */
  relink(queries: Queries, linkId: LinkId): string | null;
}
