/** Types of page handlers, and the common parts of the account's pages. */

import type { Problem } from "../../../../shared/api/errors.ts";
import { type AccountRecord, accountGet } from "../../../../shared/api/people/account.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import type { Log } from "../../../core/log.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Users } from "../../../domain/users/index.ts";
import type { Pipeline } from "../../pipeline/pipeline.ts";
import { retryAfterOf, toProblem } from "../../pipeline/problem.ts";
import type { Cookie } from "../headers.ts";
import type { FormReport, Page } from "../layout.tsx";
import { proofPage } from "../pages/account.tsx";
import { deadEnd } from "../pages/sign-in.tsx";
import type { WebContext } from "../request-context.ts";

/** Destination after a sign-in. */
export const INSIDE = "/";

export interface HandlerDeps {
  road: Pipeline;
  users: Pick<Users, "signIn" | "signUp" | "addresses" | "redeem" | "passkeys" | "identities">;
  orgName(orgId: OrgId): string;
  /** The service's URL for browsers, without a slash at its end. */
  url(): string;
  /** Whether the service has several hosts. */
  hasHosts(): boolean;
  log: Log;
}

/** Cookies that the browser stores from now on; null: deleted. */
export type Cookies = Partial<Record<Cookie, string | null>>;

/** Result of a page's handler: a page, or a redirect. */
export type Outcome = (PageReply | Redirected) & { cookies?: Cookies };
interface PageReply {
  page: Page;
  retry_after_seconds?: number | null;
  /** The page reloads itself while work is in progress. */
  look_again_seconds?: number;
}
interface Redirected {
  to: string;
  /** The result of the form, for the next page. */
  said?: string | null;
}
export type Handler = (visit: WebContext) => Promise<Outcome>;
export type Handlers = Record<string, Handler>;

/** Redirects anonymous visitors to the sign-in. A password or passkey sent with the form is verified before the form is processed. */
export function inside(deps: HandlerDeps, handler: Handler): Handler {
  return async (visit) => {
    const session = visit.caller?.session;
    if (!session) return { to: "/signin" };
    const { form, field, asked } = visit;
    const isByPasskey = form.has("proof_passkey");
    if (!isByPasskey && !form.has("proof")) return await handler(visit);
    let secret: string;
    try {
      // Attempts are counted per session.
      secret = isByPasskey
        ? await deps.users.passkeys.prove(session.session_id, field("proof_passkey"), asked)
        : await deps.users.signIn.prove(session.session_id, field("proof"), asked);
    } catch (error) {
      const { problem, retry_after_seconds } = await refusalOf(deps, visit, error);
      return { page: await askProof(visit, problem), retry_after_seconds };
    }
    // Whatever the outcome of the form, the browser must receive the new secret.
    const outcome = await handler(visit.proved(secret)).catch(
      (error: unknown): Outcome => errorReply(error, visit.request.request_id, deps.log),
    );
    return { ...outcome, cookies: { session: secret, ...outcome.cookies } };
  };
}

/** The page of an error that no handler has caught. */
export function errorReply(error: unknown, requestId: string, log: Log): PageReply {
  const problem = toProblem(error, requestId, log);
  return { page: deadEnd(problem.title, problem), retry_after_seconds: retryAfterOf(error, problem) };
}

/** The account for a page. Throws the operation's problem. */
export async function accountOf(visit: WebContext): Promise<AccountRecord> {
  const answer = await visit.call(accountGet);
  if (answer.ok) return answer.body;
  throw new ServiceError(answer.problem.code, { detail: answer.problem.detail });
}

const askProof = async (visit: WebContext, problem: Problem | null): Promise<Page> =>
  proofPage(await accountOf(visit), visit.request.url.pathname, visit.form, problem, visit.offers.toProve());

/**
 * Result of a form: redirects to the page, so that a reload submits nothing twice; a refusal shows the page with the reason, and a missing
 * proof is requested first.
 */
export async function after(
  visit: WebContext,
  answer: { ok: true } | { ok: false; problem: Problem },
  done: string | null,
  page: (report: FormReport) => Promise<Page>,
): Promise<Outcome> {
  if (answer.ok) return { to: visit.request.url.pathname, said: done };
  const { problem } = answer;
  if (problem.code === "proof_required") return { page: await askProof(visit, null) };
  return { page: { ...(await page({ problem, typed: visit.form })), status: problem.status } };
}

/** Errors of guessed passwords, links and codes, also those of an issuer, which each attempt would query. */
const GUESSED: readonly string[] = ["sign_in_failed", "link_not_found", "device_not_found", "upstream_failed"];

/** The reason why a sign-in is refused. Invalid credentials are counted per address and audited, like an invalid key. */
export async function refusalOf({ road, log }: HandlerDeps, { request }: WebContext, error: unknown) {
  const { request_id, ip } = request;
  const isBad = error instanceof ServiceError && GUESSED.includes(error.code);
  let refusal = error;
  if (isBad) {
    const recognise = () => {
      throw error;
    };
    refusal = road.identify({ authorization: null, source: "web", request_id, ip, recognise }).refusal;
    await road.failuresWritten();
  }
  const problem = toProblem(refusal, request_id, log);
  return { problem, retry_after_seconds: retryAfterOf(refusal, problem) };
}
