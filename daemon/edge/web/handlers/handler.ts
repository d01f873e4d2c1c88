/** Owns what a page's handler is, and what those inside the account have in common. */
import { type AccountRecord, accountGet } from "../../../../shared/api/account.ts";
import type { Problem } from "../../../../shared/api/errors.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import type { Log } from "../../../core/log.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Users } from "../../../domain/users/index.ts";
import { retryAfterOf, toProblem } from "../../problem.ts";
import type { Road } from "../../run.ts";
import type { Cookie } from "../headers.ts";
import type { Page } from "../layout.ts";
import { proofPage, type Told } from "../pages/account.ts";
import { deadEnd } from "../pages/outside.ts";
import type { Visit } from "../visit.ts";

/** Where somebody comes who was let in. */
export const INSIDE = "/";

export interface HandlerDeps {
  road: Road;
  users: Pick<Users, "signIn" | "signUp" | "addresses" | "redeem" | "passkeys" | "identities">;
  orgName(orgId: OrgId): string;
  /** Where browsers find us, without a slash at its end. */
  url(): string;
  /** Whether the service has several hosts. */
  hasHosts(): boolean;
  log: Log;
}

/** What is to be kept by the browser from now on; null: forgotten. */
export type Cookies = Partial<Record<Cookie, string | null>>;

/** What a page's handler comes to: a page, or where to go on. */
export type Outcome = (Shown | Redirected) & { cookies?: Cookies };
interface Shown {
  page: Page;
  retry_after_seconds?: number | null;
  /** What goes on is looked at again by itself. */
  look_again_seconds?: number;
}
interface Redirected {
  to: string;
  /** What was done, for the page that follows. */
  said?: string | null;
}
export type Handler = (visit: Visit) => Promise<Outcome>;
export type Handlers = Record<string, Handler>;

/** Who is not signed in signs in first. A password or passkey that came along with the form proves who it is, before the form is looked at. */
export function inside(deps: HandlerDeps, handler: Handler): Handler {
  return async (visit) => {
    const session = visit.caller?.session;
    if (!session) return { to: "/signin" };
    const { form, field, asked } = visit;
    const isByPasskey = form.has("proof_passkey");
    if (!isByPasskey && !form.has("proof")) return await handler(visit);
    let secret: string;
    try {
      // The session has a count of its own.
      secret = isByPasskey
        ? await deps.users.passkeys.prove(session.session_id, field("proof_passkey"), asked)
        : await deps.users.signIn.prove(session.session_id, field("proof"), asked);
    } catch (error) {
      const { problem, retry_after_seconds } = await refusalOf(deps, visit, error);
      return { page: await askProof(visit, problem), retry_after_seconds };
    }
    // Whatever comes of the form, the browser must have the new secret.
    const outcome = await handler(visit.proved(secret)).catch((error: unknown): Outcome => {
      const problem = toProblem(error, visit.request.request_id, deps.log);
      return { page: deadEnd(problem.title, problem), retry_after_seconds: retryAfterOf(error, problem) };
    });
    return { ...outcome, cookies: { session: secret, ...outcome.cookies } };
  };
}

/** The account as a page needs it. Throws as the operation is refused. */
export async function accountOf(visit: Visit): Promise<AccountRecord> {
  const answer = await visit.call(accountGet);
  if (answer.ok) return answer.body;
  throw new ServiceError(answer.problem.code, { detail: answer.problem.detail });
}

const askProof = async (visit: Visit, problem: Problem | null): Promise<Page> =>
  proofPage(await accountOf(visit), visit.request.url.pathname, visit.form, problem, visit.offers.toProve());

/**
 * What came of a form: the page is asked for anew, so that loading it again sends nothing twice; where it was refused it says why,
 * and what wants a proof asks for that first.
 */
export async function after(
  visit: Visit,
  answer: { ok: true } | { ok: false; problem: Problem },
  done: string | null,
  page: (told: Told) => Promise<Page>,
): Promise<Outcome> {
  if (answer.ok) return { to: visit.request.url.pathname, said: done };
  const { problem } = answer;
  if (problem.code === "proof_required") return { page: await askProof(visit, null) };
  return { page: { ...(await page({ problem, typed: visit.form })), status: problem.status } };
}

/** What comes of guessing passwords, links and codes, also those of an issuer, which would be asked each time. */
const GUESSED: readonly string[] = ["sign_in_failed", "link_not_found", "device_not_found", "upstream_failed"];

/** Why somebody is not let in. What was wrong of them is counted by address, and on record, as a bad key is. */
export async function refusalOf({ road, log }: HandlerDeps, { request }: Visit, error: unknown) {
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
