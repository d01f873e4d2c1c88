/** Finds the organization and the webhook of a call. A session needs a person that manages the organization. */
import type { OrgId } from "../../../shared/ids.ts";
import type { KeyCall } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { WebhookDeps } from "./deps.ts";
import { getWebhook } from "./store.ts";
import type { WebhookRow } from "./table.ts";

/** Throws org_not_found, insufficient_scope. */
export function findOrg({ findOrg }: WebhookDeps, { caller }: KeyCall, params: Record<string, string>): OrgId {
  const orgId = findOrg(caller, String(params.org_id));
  if (caller.session && !caller.session.gives.includes("org:admin")) {
    throw new ServiceError("insufficient_scope", {
      detail: "Only owners and admins can see an organization's webhooks.",
      details: { required: "admin" },
    });
  }
  return orgId;
}

/** Throws webhook_not_found too. */
export function findWebhook(deps: WebhookDeps, call: KeyCall, params: Record<string, string>): WebhookRow {
  const row = getWebhook(deps.database.queries, findOrg(deps, call, params), String(params.webhook_id));
  if (!row) throw new ServiceError("webhook_not_found", { detail: `There is no webhook ${params.webhook_id}.` });
  return row;
}
