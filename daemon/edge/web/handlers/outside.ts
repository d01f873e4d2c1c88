/** Owns the pages by which somebody is let in, and the way out. */
import { sessionEnd } from "../../../../shared/api/account.ts";
import type { Problem } from "../../../../shared/api/errors.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { NewPerson, SignedIn } from "../../../domain/users/index.ts";
import type { Page } from "../layout.ts";
import { invitePage, linkPage, setupPage, signInPage } from "../pages/outside.ts";
import type { Visit } from "../visit.ts";
import { type HandlerDeps, type Handlers, type Outcome, refusalOf } from "./handler.ts";

export const INVITE = /^\/invite\/([\w-]{1,64})$/;

const personOf = ({ field }: Visit): NewPerson => ({
  name: field("name"),
  email: field("email"),
  password: field("password"),
});

export function outsideHandlers(deps: HandlerDeps): Handlers {
  const { signIn, redeem } = deps.users;

  /** Lets somebody in, or shows the page again with what was wrong. */
  const letIn = async (
    visit: Visit,
    attempt: () => Promise<SignedIn | null>,
    again: (problem: Problem) => Page,
  ): Promise<Outcome> => {
    try {
      deps.road.requireAttempt(visit.request.ip);
      const signedIn = await attempt();
      if (!signedIn) return { to: "/account" };
      const { session, browser } = signedIn;
      return { to: "/account", cookies: { session, ...(browser === null ? {} : { browser }) } };
    } catch (error) {
      const { problem, retry_after_seconds } = await refusalOf(deps, visit, error);
      return { page: { ...again(problem), status: problem.status }, retry_after_seconds };
    }
  };

  return {
    "/signin": async (visit) => {
      const { form, field, asked } = visit;
      if (!visit.isPost) return visit.caller ? { to: "/account" } : { page: signInPage(form) };
      const attempt = () => signIn.byPassword(field("email"), field("password"), asked);
      return await letIn(visit, attempt, (problem) => signInPage(form, problem));
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
          return { page: setupPage(kind === "user" ? "user" : "setup", new Map([["token", token]])) };
        } catch (error) {
          return await letIn(
            visit,
            () => Promise.reject(error),
            (problem) => linkPage(new Map(), problem),
          );
        }
      }
      const isNew = form.has("email");
      return await letIn(
        visit,
        () => (isNew ? redeem.setup(token, personOf(visit), asked) : redeem.renew(token, field("password"), asked)),
        (problem) => setupPage(isNew ? "setup" : "user", form, problem),
      );
    },

    "/invite": async (visit) => {
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
      if (!visit.isPost) return { page: invitePage(token, invited, form) };
      const session = field("as") === "me" ? caller?.session : undefined;
      const attempt = async () => {
        if (!session) return await redeem.invitation(token, personOf(visit), asked);
        await redeem.asMyself(token, session.session_id, asked);
        return null;
      };
      return await letIn(visit, attempt, (problem) => invitePage(token, invited, form, problem));
    },
  };
}
