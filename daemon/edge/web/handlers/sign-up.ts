/** Handlers of the pages for sign-up, recovery and verification of an address, which send e-mails. */
import { ServiceError } from "../../../core/service-error.ts";
import type { SignedIn } from "../../../domain/users/index.ts";
import { AddressLimit } from "../../pipeline/address-limit.ts";
import type { Page } from "../layout.tsx";
import { deadEnd, verifyPage } from "../pages/sign-in.tsx";
import { askedPage, notePage, recoverPage, signUpClosedPage, signUpPage, welcomePage } from "../pages/sign-up.tsx";
import type { WebContext } from "../request-context.ts";
import { type HandlerDeps, type Handlers, inside, type Outcome, refusalOf } from "./handler.ts";
import { arrivalOf, letIn, wayOf } from "./sign-in.ts";

export interface SignUpHandlerDeps extends HandlerDeps {
  /** Most e-mails for requests of one network per hour, and of all per day; 0: no limit. */
  letters: { perHour: number; perDay: number };
}

/** Share of a day's e-mails that may go to users of one network. */
const SHARE_OF_NETWORK = 0.1;
const HOURS = 24;

/** The response is the same for a new and for an existing user. */
export const LETTER = "If the address is eligible, an e-mail with a link is on its way. The link works once.";
const FILED = "Your request was sent. The operator of this service will review it and contact you.";

export function signUpHandlers(deps: SignUpHandlerDeps): Handlers {
  const { signUp, addresses } = deps.users;
  const { perHour, perDay } = deps.letters;
  const share = Math.ceil(perDay * SHARE_OF_NETWORK);
  const ofHour = perHour === 0 ? null : new AddressLimit(perHour, perHour);
  const ofDay = perHour === 0 || perDay === 0 ? null : new AddressLimit(share / HOURS, share);

  /** Throws rate_limited. */
  const requireLetter = ({ request }: WebContext) => {
    const ip = request.ip ?? "";
    if (ofHour?.has(ip) !== false && ofDay?.take(ip) !== false && ofHour?.take(ip) !== false) return;
    throw new ServiceError("rate_limited", {
      detail: "Too many e-mails were requested from your IP address.",
      hint: "Try again in an hour.",
      retryAfterSeconds: 3600,
    });
  };

  /** Shows the result as a page; on refusal, the previous page with the reason. */
  const shown = async (
    visit: WebContext,
    done: () => Promise<Page>,
    again: Parameters<typeof letIn>[3],
  ): Promise<Outcome> => {
    try {
      return { page: await done() };
    } catch (error) {
      const { problem, retry_after_seconds } = await refusalOf(deps, visit, error);
      return { page: { ...again(problem), status: problem.status }, retry_after_seconds };
    }
  };

  return {
    "/signup": async (visit) => {
      const { form, field, asked } = visit;
      const token = field("token").trim();
      const start = (problem: Parameters<Parameters<typeof letIn>[3]>[0] | null) =>
        signUp.mode === "closed"
          ? signUpClosedPage()
          : signUpPage(form, { isForAll: signUp.isForAll, sendsLetters: signUp.sendsLetters }, problem);
      if (!visit.isPost) return { page: start(null) };
      const note = { name: field("name"), note: field("note") };
      switch (field("do")) {
        case "look":
          return await shown(
            visit,
            async () => {
              deps.road.requireAttempt(visit.request.ip);
              const { kind, email, isClaimed } = signUp.look(token);
              const fields = new Map([["token", token]]);
              if (kind === "request") return notePage(fields, email);
              return welcomePage(fields, { email, isClaimed }, arrivalOf(deps, visit, token));
            },
            start,
          );
        case "ask":
          return await shown(
            visit,
            async () => {
              deps.road.requireAttempt(visit.request.ip);
              await signUp.request(token, note);
              return askedPage("Thank you", FILED);
            },
            (problem) => (problem.code === "link_not_found" ? start(problem) : notePage(form, null, problem)),
          );
        case "done": {
          const attempt = (): Promise<SignedIn> =>
            signUp.finish(token, { name: field("name"), way: wayOf(visit) }, field("org_name"), asked);
          return await letIn(deps, visit, attempt, (problem) =>
            problem.code === "link_not_found"
              ? start(problem)
              : welcomePage(form, signUp.look(token), arrivalOf(deps, visit, token), problem),
          );
        }
        default:
          return await shown(
            visit,
            async () => {
              requireLetter(visit);
              await signUp.ask(field("email"), note, asked);
              return signUp.sendsLetters ? askedPage("Check your e-mail", LETTER) : askedPage("Thank you", FILED);
            },
            start,
          );
      }
    },

    "/recover": async (visit) => {
      const page = (problem: Parameters<Parameters<typeof letIn>[3]>[0] | null) =>
        recoverPage(visit.form, addresses.isOn, problem);
      if (!visit.isPost) return { page: page(null) };
      return await shown(
        visit,
        async () => {
          requireLetter(visit);
          await addresses.recover(visit.field("email"), visit.asked);
          return askedPage("Check your e-mail", `${LETTER} It is sent only to a verified address of an account.`);
        },
        page,
      );
    },

    "/verify": inside(deps, async (visit) => {
      if (!visit.isPost) return { page: verifyPage(visit.form) };
      const session_id = visit.caller?.session?.session_id;
      if (session_id === undefined) throw new ServiceError("session_ended");
      try {
        deps.road.requireAttempt(visit.request.ip);
        await addresses.confirm(session_id, visit.field("token").trim(), visit.asked);
        return { to: "/account", said: "Your address is verified." };
      } catch (error) {
        const { problem, retry_after_seconds } = await refusalOf(deps, visit, error);
        return { page: deadEnd("Not verified", problem, "/account"), retry_after_seconds };
      }
    }),
  };
}
