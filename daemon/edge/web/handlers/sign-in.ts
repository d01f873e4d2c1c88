/** Handlers of the pages for sign-in and sign-out. */

import type { Problem } from "../../../../shared/api/errors.ts";
import { sessionEnd } from "../../../../shared/api/people/account.ts";
import type { UserId } from "../../../../shared/ids.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { type NewPerson, type NewWay, RETURN_PATH, type SignedIn } from "../../../domain/users/index.ts";
import type { Page } from "../layout.tsx";
import { type Arrival, deadEnd, invitePage, linkPage, returnPage, setupPage, signInPage } from "../pages/sign-in.tsx";
import type { WebContext } from "../request-context.ts";
import { type HandlerDeps, type Handlers, INSIDE, type Outcome, refusalOf } from "./handler.ts";

const INVITE = /^\/invite\/([\w-]{1,64})$/;

const personOf = (visit: WebContext): NewPerson => ({
  name: visit.field("name"),
  email: visit.field("email"),
  way: wayOf(visit),
});

export const wayOf = ({ field }: WebContext): NewWay =>
  field("passkey") === ""
    ? { password: field("password") }
    : { passkey: field("passkey"), user_id: field("user_id") as UserId };

/** Passkey options for an arrival by a link. Throws link_not_found. */
export function arrivalOf({ users }: HandlerDeps, { offers }: WebContext, token: string): Arrival {
  const person = users.redeem.comer(token);
  return { user_id: person.user_id, offer: offers.toArrive(person) };
}

/** Signs a user in, or shows the page again with the error. `isKnown`: failures of others at the same address do not count. */
export async function letIn(
  deps: HandlerDeps,
  visit: WebContext,
  attempt: () => Promise<SignedIn | null>,
  again: (problem: Problem) => Page,
  isKnown = false,
): Promise<Outcome> {
  try {
    if (!isKnown) deps.road.requireAttempt(visit.request.ip);
    const signedIn = await attempt();
    if (!signedIn) return { to: INSIDE };
    const { session, browser } = signedIn;
    return { to: INSIDE, cookies: { session, ...(browser === null ? {} : { browser }) } };
  } catch (error) {
    const { problem, retry_after_seconds } = await refusalOf(deps, visit, error);
    return { page: { ...again(problem), status: problem.status }, retry_after_seconds };
  }
}

export function outsideHandlers(deps: HandlerDeps): Handlers {
  const { signIn, redeem, passkeys, identities, signUp, addresses } = deps.users;
  const otherWays = (visit: WebContext) => ({
    offer: visit.offers.toSignIn(),
    elsewhere: identities.name,
    mayRecover: addresses.isOn,
    maySignUp: signUp.isForAll,
  });

  return {
    "/signin": async (visit) => {
      const { form, field, asked } = visit;
      const page = (problem: Problem | null) => signInPage(form, otherWays(visit), problem);
      if (!visit.isPost) return visit.caller ? { to: INSIDE } : { page: page(null) };
      if (field("do") === "elsewhere") {
        try {
          deps.road.requireAttempt(visit.request.ip);
          return { to: await identities.leave(visit.offers.visitor()) };
        } catch (error) {
          const { problem, retry_after_seconds } = await refusalOf(deps, visit, error);
          return { page: { ...page(problem), status: problem.status }, retry_after_seconds };
        }
      }
      const isByPasskey = field("do") === "passkey";
      const attempt = () =>
        isByPasskey
          ? passkeys.signIn(field("passkey"), asked)
          : signIn.byPassword(field("email"), field("password"), asked);
      return await letIn(deps, visit, attempt, page, signIn.isKnown(isByPasskey ? null : field("email"), asked));
    },

    // The issuer redirects to a page with a form; only its submission has an effect.
    [RETURN_PATH]: async (visit) => {
      const { caller, asked, request } = visit;
      if (!visit.isPost) return { page: returnPage(request.url.searchParams) };
      const answer = new URLSearchParams([...visit.form]);
      const session_id = caller?.session?.session_id;
      const page = (problem: Problem | null) => signInPage(new Map(), otherWays(visit), problem);
      if (session_id === undefined || !identities.isLink(answer, session_id)) {
        return await letIn(deps, visit, () => identities.signIn(answer, asked), page);
      }
      try {
        await identities.link(answer, session_id, asked);
        return { to: "/account/ways", said: "The account is linked." };
      } catch (error) {
        const { problem, retry_after_seconds } = await refusalOf(deps, visit, error);
        return { page: deadEnd("Not linked", problem, "/account/ways"), retry_after_seconds };
      }
    },

    "/signout": async (visit) => {
      if (!visit.isPost) throw new ServiceError("method_not_allowed");
      if (visit.caller) await visit.call(sessionEnd, { session_id: "this" });
      return { to: "/signin", cookies: { session: null } };
    },

    "/setup": async (visit) => {
      const { form, field, asked } = visit;
      const token = field("token").trim();
      if (!visit.isPost) return { page: linkPage(form) };
      if (field("step") !== "done") {
        try {
          const { kind } = redeem.look(token, ["setup", "user"]);
          const fields = new Map([["token", token]]);
          return { page: setupPage(kind === "user" ? "user" : "setup", fields, arrivalOf(deps, visit, token)) };
        } catch (error) {
          return await letIn(
            deps,
            visit,
            () => Promise.reject(error),
            (problem) => linkPage(new Map(), problem),
          );
        }
      }
      const isNew = form.has("email");
      return await letIn(
        deps,
        visit,
        () =>
          isNew
            ? redeem.setup(token, personOf(visit), asked)
            : redeem.renew(token, wayOf(visit), form.has("only"), asked),
        (problem) =>
          problem.code === "link_not_found"
            ? linkPage(new Map(), problem)
            : setupPage(isNew ? "setup" : "user", form, arrivalOf(deps, visit, token), problem),
      );
    },

    "/invite/{token}": async (visit) => {
      const { form, field, asked, caller } = visit;
      const token = INVITE.exec(visit.request.url.pathname)?.[1] ?? "";
      const { org_id, role, email } = redeem.look(token, ["invitation"]);
      const signedInAs = caller?.name ?? null;
      const invited = {
        org: org_id ? deps.orgName(org_id) : "",
        role: role ?? "viewer",
        signedInAs,
        isForOne: email !== null,
      };
      const page = (problem: Problem | null) =>
        invitePage(token, invited, form, arrivalOf(deps, visit, token), problem);
      if (!visit.isPost) return { page: page(null) };
      const session = field("as") === "me" ? caller?.session : undefined;
      const attempt = async () => {
        if (!session) return await redeem.invitation(token, personOf(visit), asked);
        await redeem.asMyself(token, session.session_id, asked);
        return null;
      };
      return await letIn(deps, visit, attempt, page);
    },
  };
}
