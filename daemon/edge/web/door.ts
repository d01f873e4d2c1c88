/**
 * Owns the web's door: which page a path is, and who visits it. A form is a page's way to an operation of the list; what an account
 * may is decided on the road, as for every other door.
 *
 *   path → can it be trusted → does a page of ours ask → the form's fields → who is it → the page's handler → the page
 */
import type { Bound, Caller } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Users } from "../../domain/users/index.ts";
import { networkOf } from "../login-limit.ts";
import type { PageRequest } from "../page-request.ts";
import { retryAfterOf, toProblem } from "../problem.ts";
import { accountHandlers } from "./handlers/account.ts";
import type { Cookies, Handler, HandlerDeps, Handlers, Outcome } from "./handlers/handler.ts";
import { memberHandlers } from "./handlers/members.ts";
import { INVITE, outsideHandlers } from "./handlers/outside.ts";
import { type Cookie, cookieIn, isFromOurPage, isTrustworthy, isVisit, pageHeaders, setCookie } from "./headers.ts";
import { render, SCRIPT, STYLE } from "./layout.ts";
import { deadEnd, plainPage } from "./pages/outside.ts";
import { makeCall, type Visit } from "./visit.ts";

const MOST_FORM_BYTES = 16 * 1024;
const FORM = "application/x-www-form-urlencoded";
const METHODS: readonly string[] = ["GET", "HEAD", "POST"];

export interface WebDeps extends Omit<HandlerDeps, "users"> {
  operations: readonly Bound[];
  users: Pick<Users, "recognise" | "signIn" | "redeem">;
}

export interface WebDoor {
  /** Whether the path is a page's. */
  has(path: string): boolean;
  /** Never rejects. */
  answer(request: PageRequest): Promise<Response>;
  /**
   * Who is signed in, for a request of the API: null without a session's cookie. What is returned throws session_ended, and
   * foreign_request where no page of ours asks.
   */
  sessionOf(headers: Headers): (() => Caller) | null;
}

export function makeWebDoor(deps: WebDeps): WebDoor {
  const { road, operations, users, log } = deps;
  const handlers: Handlers = { ...outsideHandlers(deps), ...accountHandlers(deps), ...memberHandlers(deps) };
  const headers = pageHeaders(STYLE, SCRIPT);
  const place = () => new URL(deps.url());
  const isSecure = () => place().protocol === "https:";

  const handlerOf = (path: string): Handler | undefined => handlers[INVITE.test(path) ? "/invite" : path];

  const answerWith = (outcome: Outcome): Response => {
    const shown = new Headers(headers);
    for (const [cookie, value] of Object.entries(outcome.cookies ?? ({} satisfies Cookies))) {
      shown.append("Set-Cookie", setCookie(cookie as Cookie, value ?? null, isSecure()));
    }
    if ("page" in outcome) {
      const { page, retry_after_seconds: wait = null } = outcome;
      if (wait !== null) shown.set("Retry-After", String(Math.ceil(wait)));
      return new Response(render(page), { status: page.status ?? 200, headers: shown });
    }
    shown.set("Location", outcome.to);
    return new Response(null, { status: 303, headers: shown });
  };

  /** Throws foreign_request, unsupported_media_type, body_too_large, invalid_body, method_not_allowed. */
  const visitOf = async (request: PageRequest): Promise<Visit> => {
    const { method, ip, request_id } = request;
    const isOurs = isFromOurPage(request.headers, place().origin);
    const isPost = method === "POST";
    if (!METHODS.includes(method)) throw new ServiceError("method_not_allowed");
    if (isPost && !isOurs) {
      throw new ServiceError("foreign_request", {
        detail: "The form was sent by another site's page, or by a program.",
      });
    }
    // Before who it is: a form may come slowly, and a session end meanwhile.
    const form = isPost ? await readForm(request) : new Map<string, string>();
    const isKnown = isOurs || isVisit(method, request.headers);
    const visitWith = (secret: string | null): Visit => {
      const recognise = () => {
        if (secret === null) throw new ServiceError("session_ended");
        return users.recognise(secret);
      };
      const caller = callerBy(recognise);
      return {
        request,
        asked: {
          ip,
          request_id,
          user_agent: request.headers.get("user-agent"),
          network: networkOf(ip ?? ""),
          browser: cookieIn(request.headers, "browser", isSecure()),
          session_id: caller?.session?.session_id ?? null,
        },
        caller,
        isPost,
        form,
        field: (name) => form.get(name) ?? "",
        call: makeCall(road, operations, request, recognise),
        proved: visitWith,
      };
    };
    return visitWith(isKnown ? cookieIn(request.headers, "session", isSecure()) : null);
  };

  return {
    has: (path) => handlerOf(path) !== undefined,

    sessionOf: (asked) => {
      const secret = cookieIn(asked, "session", isSecure());
      if (secret === null) return null;
      return () => {
        if (!isFromOurPage(asked, place().origin)) throw new ServiceError("foreign_request");
        return users.recognise(secret);
      };
    },

    answer: async (request) => {
      try {
        const handler = handlerOf(request.url.pathname);
        if (!handler) throw new ServiceError("route_not_found");
        if (!isTrustworthy(place())) return answerWith({ page: plainPage(place().host) });
        return answerWith(await handler(await visitOf(request)));
      } catch (error) {
        const problem = toProblem(error, request.request_id, log);
        return answerWith({ page: deadEnd(problem.title, problem), retry_after_seconds: retryAfterOf(error, problem) });
      }
    },
  };
}

function callerBy(recognise: () => Caller): Caller | null {
  try {
    return recognise();
  } catch {
    return null;
  }
}

/** Throws unsupported_media_type, body_too_large, invalid_body. */
async function readForm({ headers, body }: PageRequest): Promise<Map<string, string>> {
  if (headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() !== FORM) {
    throw new ServiceError("unsupported_media_type", { hint: "Send the page's form." });
  }
  return new Map(new URLSearchParams(new TextDecoder().decode(await body(MOST_FORM_BYTES))));
}
