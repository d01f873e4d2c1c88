/** Receiver of the payment service's webhooks: notices signed by it are stored, and answered immediately. */
import type { Log } from "../../core/log.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Billing } from "../../domain/billing/index.ts";
import type { PageRequest } from "../page-request.ts";
import { toProblem } from "../pipeline/problem.ts";

export const NOTICE_PATH = "/billing/events";
const MAX_BYTES = 256 * 1024;
const SIGNATURE = "stripe-signature";

export interface NoticeDeps {
  billing: Pick<Billing, "isOn" | "notice">;
  log: Log;
}

/** The returned handler never rejects. */
export function makeNotices({ billing, log }: NoticeDeps): (request: PageRequest) => Promise<Response> {
  return async ({ method, headers, body, request_id }) => {
    try {
      if (method !== "POST") throw new ServiceError("method_not_allowed");
      const text = new TextDecoder().decode(await body(MAX_BYTES));
      if (await billing.notice(text, headers.get(SIGNATURE) ?? "")) return Response.json({ received: true });
      throw new ServiceError("invalid_body", { detail: "The notice is not signed by the payment service, or is old." });
    } catch (error) {
      const problem = toProblem(error, request_id, log);
      return Response.json(problem, {
        status: problem.status,
        headers: { "Content-Type": "application/problem+json", "Cache-Control": "no-store" },
      });
    }
  };
}
