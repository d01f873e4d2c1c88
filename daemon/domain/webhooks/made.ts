/** Webhooks as resources that are disabled when the user or key that created them loses access. */
import { and, eq, isNull } from "drizzle-orm";
import { webhookCreate } from "../../../shared/api/webhooks.ts";
import { appendAudit } from "../audit/index.ts";
import { type MakerRule, madeKind } from "../orgs/index.ts";
import { changeWebhook } from "./store.ts";
import { webhooks } from "./table.ts";

export const WEBHOOK_RULE: MakerRule = { scope: webhookCreate.access, isPersonal: false };
export const ACTOR = { type: "system", id: "webhooks", name: "webhooks" };

export const webhooksMade = madeKind({
  name: "webhooks",
  table: webhooks,
  takeOver: "The caller that re-enables a webhook after its maker lost access becomes its maker.",
  find: (queries, isOver, orgId) => {
    const { org_id, created_by_type: type, created_by_id: id } = webhooks;
    const isEnabled = and(eq(org_id, orgId), isNull(webhooks.disabled_reason));
    const condition = and(isEnabled, isOver({ org_id, type, id }, WEBHOOK_RULE));
    return queries.select().from(webhooks).where(condition).all();
  },
  idOf: ({ webhook_id }) => webhook_id,
  end: (queries, rows, at) => {
    for (const { org_id, webhook_id } of rows) {
      changeWebhook(queries, webhook_id, { disabled_reason: "maker_ended", disabled_at: at });
      appendAudit(queries, {
        ...{ event: "webhook.disabled", outcome: "success", at, org_id, actor: ACTOR, source: "reconciler" },
        details: { webhook_id, reason: "maker_ended" },
      });
    }
  },
});
