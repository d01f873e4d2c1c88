/** Handlers of the pages for plan, credits and usage: overview, payment, and the resulting key. */

import type { Problem } from "../../../../shared/api/errors.ts";
import {
  billingCheckout,
  billingGet,
  billingKey,
  billingPortal,
  billingSuccess,
} from "../../../../shared/api/people/billing.ts";
import { creditList } from "../../../../shared/api/people/credits.ts";
import { usage } from "../../../../shared/api/usage.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { FormReport } from "../layout.tsx";
import type { NewKey } from "../pages/account.tsx";
import { billingPage, successPage } from "../pages/billing.tsx";
import { deadEnd } from "../pages/sign-in.tsx";
import type { WebContext } from "../request-context.ts";
import { accountOf, after, type HandlerDeps, type Handlers, inside, type Outcome } from "./handler.ts";

const SHOWN = 50;
const org_id = "self";
/** Refresh interval while a payment is confirmed, which takes seconds. */
const LOOK_AGAIN_SECONDS = 3;

export function billingHandlers(deps: HandlerDeps): Handlers {
  const billing = async (visit: WebContext, report: FormReport = {}) =>
    billingPage(
      await accountOf(visit),
      {
        usage: bodyOf(await visit.call(usage, { org_id })),
        credits: bodyOf(await visit.call(creditList, { org_id, limit: SHOWN })),
        bought: bodyOf(await visit.call(billingGet, { org_id })),
      },
      report,
    );

  const success = async (
    visit: WebContext,
    checkout_id: string,
    made: NewKey | null,
    report: FormReport = {},
  ): Promise<Outcome> => {
    const seen = await visit.call(billingSuccess, { org_id, checkout_id });
    if (!seen.ok && seen.problem.code === "billing_off") return { to: "/billing" };
    if (!seen.ok) return { page: deadEnd("Payment not found", seen.problem, "/billing") };
    const page = successPage(await accountOf(visit), { ...seen.body, made }, report);
    return seen.body.is_paid ? { page } : { page, look_again_seconds: LOOK_AGAIN_SECONDS };
  };

  return {
    "/billing": inside(deps, async (visit) => {
      if (!visit.isPost) return { page: await billing(visit) };
      const leads =
        visit.field("do") === "buy"
          ? await visit.call(billingCheckout, { org_id })
          : await visit.call(billingPortal, { org_id });
      if (leads.ok) return { to: leads.body.url };
      return await after(visit, leads, null, (report) => billing(visit, report));
    }),

    "/billing/success": inside(deps, async (visit) => {
      if (!visit.isPost) return await success(visit, visit.request.url.searchParams.get("session_id") || "none", null);
      const checkout_id = visit.field("session_id");
      const taken = await visit.call(billingKey, { org_id, checkout_id });
      if (taken.ok) {
        const { key, name } = taken.body;
        return await success(visit, checkout_id, { url: deps.url(), key, name });
      }
      return await after(visit, taken, null, async (report) => {
        const outcome = await success(visit, checkout_id, null, report);
        return "page" in outcome ? outcome.page : deadEnd("Payment not found", taken.problem, "/billing");
      });
    }),
  };
}

/** The body of a successful answer. Throws the operation's problem. */
function bodyOf<T>(answer: { ok: true; body: T } | { ok: false; problem: Problem }): T {
  if (answer.ok) return answer.body;
  throw new ServiceError(answer.problem.code, { detail: answer.problem.detail });
}
