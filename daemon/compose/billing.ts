/** Composition of billing. */
import { type BillingPlan, makeBilling } from "../domain/billing/index.ts";
import type { Plans } from "../domain/orgs/index.ts";
import { requireOwner } from "../domain/users/index.ts";
import type { Base } from "./base.ts";
import type { Orgs } from "./orgs.ts";

export function composeBilling(
  { log, directory: { database } }: Base,
  { orgs, changes }: Orgs,
  plans: Plans,
  plan: BillingPlan | null,
  url: () => string,
) {
  const deps = { database, changes, log, plans, url, findOrg: orgs.find, requireOwner };
  return makeBilling(deps, plan);
}
