import type { OrgId } from "../../../shared/ids.ts";
import type { Directory } from "../../cluster/directory.ts";
import type { Caller } from "../../core/call/operation.ts";
import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import type { Chains } from "../audit/index.ts";
import type { SsrfPlan } from "./ssrf-guard.ts";
import type { WebhookRow } from "./table.ts";

export interface WebhookDeps {
  /** This host's database, with the position of each webhook. */
  database: Database;
  /** Its commits change the webhooks themselves. */
  directory: Pick<Directory, "database" | "onChange">;
  log: Log;
  chains: Chains;
  plan: SsrfPlan;
  /** File with the key that secrets are derived from. */
  keyFile: string;
  /** Whether the webhook's maker still has access. */
  isMakerGood(webhook: WebhookRow): boolean;
  /** Ends things in the organization with makers that have lost access. */
  endMade(orgId: OrgId): Promise<void>;
  /** Resolves `self`. Throws org_not_found for any organization but the caller's, insufficient_scope for a bound key. */
  findOrg(caller: Caller, orgId: string): OrgId;
}
