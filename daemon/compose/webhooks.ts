/** Composition of webhooks. */
import type { Chains } from "../domain/audit/index.ts";
import { isMakerGood } from "../domain/users/index.ts";
import { makeWebhooks, type SsrfPlan, WEBHOOK_RULE } from "../domain/webhooks/index.ts";
import type { Base } from "./base.ts";
import type { Orgs } from "./orgs.ts";

export function composeWebhooks(
  { database, directory, log, paths }: Base,
  { orgs, changes }: Orgs,
  chains: Chains,
  plan: SsrfPlan,
) {
  return makeWebhooks({
    ...{ database, directory, log, chains, plan, keyFile: paths.webhook_key, findOrg: orgs.find },
    isMakerGood: ({ org_id, created_by_type: type, created_by_id: id }) =>
      isMakerGood(database.queries, { org_id, type, id }, WEBHOOK_RULE),
    endMade: changes.endMadeIn,
  });
}
