/** Owns what the page of plan, credits and usage shows. */
import { creditList } from "../../../../shared/api/credits.ts";
import { usage } from "../../../../shared/api/usage.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { billingPage } from "../pages/billing.ts";
import { accountOf, type HandlerDeps, type Handlers, inside } from "./handler.ts";

const SHOWN = 50;

export function billingHandlers(deps: HandlerDeps): Handlers {
  return {
    "/billing": inside(deps, async (visit) => {
      if (visit.isPost) throw new ServiceError("method_not_allowed");
      const used = await visit.call(usage, { org_id: "self" });
      const credits = await visit.call(creditList, { org_id: "self", limit: SHOWN });
      if (!used.ok) throw new ServiceError(used.problem.code, { detail: used.problem.detail });
      if (!credits.ok) throw new ServiceError(credits.problem.code, { detail: credits.problem.detail });
      return { page: billingPage(await accountOf(visit), { usage: used.body, credits: credits.body }) };
    }),
  };
}
