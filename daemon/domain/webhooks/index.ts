/** Webhooks: URLs to which an organization's events are sent, in the order of the audit. */
import type { OrgId } from "../../../shared/ids.ts";
import type { Bound } from "../../core/call/operation.ts";
import { locally } from "../../db/dry-run.ts";
import { makeConfigure } from "./configure.ts";
import { makeDeliveries } from "./deliveries.ts";
import type { WebhookDeps } from "./deps.ts";
import { Sender } from "./lanes.ts";
import { makeShown } from "./record.ts";
import { WebhookSecrets } from "./secrets.ts";
import { SsrfGuard } from "./ssrf-guard.ts";
import { deleteOwn, deleteWebhook, getWebhook, listWebhooks } from "./store.ts";

export { cursorAfterDelivery } from "./deliveries.ts";
export { WEBHOOK_RULE, webhooksMade } from "./made.ts";
export { planSsrfGuard, type SsrfPlan } from "./ssrf-guard.ts";

export interface Webhooks {
  operations: Bound[];
  /** Whether the organization has a webhook with this id. */
  has(orgId: OrgId, webhookId: string): boolean;
  /** Statistics of the webhooks of all organizations together. */
  figures: Sender["figures"];
  /** Stops sending events of an organization that ends. */
  forgetOrg(orgId: OrgId): Promise<void>;
  /** Sends new events, and those since the last stop, until the returned function is called. */
  start(): () => Promise<void>;
}

export function makeWebhooks(deps: WebhookDeps): Webhooks {
  const { database, directory } = deps;
  const reach = new SsrfGuard(deps.plan);
  const secrets = new WebhookSecrets(deps.keyFile);
  const sender = new Sender(deps, { reach, secrets });
  const shown = makeShown(deps, sender, secrets);
  return {
    operations: [...makeConfigure(deps, { sender, reach, secrets, shown }), ...makeDeliveries(deps, sender)],
    has: (orgId, webhookId) => getWebhook(database.queries, orgId, webhookId) !== undefined,
    figures: () => sender.figures(),
    forgetOrg: async (orgId) => {
      for (const { webhook_id } of listWebhooks(database.queries, orgId, null, Number.MAX_SAFE_INTEGER)) {
        await sender.change(orgId, webhook_id, () =>
          directory.database.commit((within) => {
            deleteWebhook(within, webhook_id);
            locally(within, (here) => deleteOwn(here, webhook_id));
          }),
        );
      }
      sender.forgetOrg(orgId);
    },
    start: () => {
      sender.start();
      return () => sender.stop();
    },
  };
}
