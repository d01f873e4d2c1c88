/**
 * The web transport: routing of pages, and their visitors. A form calls an operation of the list; an account's permissions are checked in
 * the pipeline, as for every other transport.
 *
 *     path → trustworthy origin → own page → the form's fields → caller → the page's handler → the page
 */

import type { Bound, Caller } from "../../core/call/operation.ts";
import { originsOf } from "../../core/config/people-url.ts";
import { ServiceError } from "../../core/service-error.ts";
import { networkOf } from "../../domain/egress/addresses.ts";
import type { Users } from "../../domain/users/index.ts";
import type { PageRequest } from "../page-request.ts";
import { matchPath, parsePath } from "../pipeline/route.ts";
import { makeNotices, NOTICE_PATH, type NoticeDeps } from "./billing-notices.ts";
import { accountHandlers } from "./handlers/account.ts";
import { type ApplicationDeps, applicationHandlers } from "./handlers/applications.ts";
import { placeIn } from "./handlers/asked-place.ts";
import { billingHandlers } from "./handlers/billing.ts";
import { dataHandlers } from "./handlers/data.ts";
import { type Cookies, errorReply, type Handler, type Handlers, INSIDE, type Outcome } from "./handlers/handler.ts";
import { hubHandlers } from "./handlers/hub.ts";
import { locateHandlers } from "./handlers/locate.ts";
import { memberHandlers } from "./handlers/members.ts";
import { endHandlers } from "./handlers/org-end.ts";
import { promptHandlers } from "./handlers/prompts.ts";
import { outsideHandlers } from "./handlers/sign-in.ts";
import { wayHandlers } from "./handlers/sign-in-methods.ts";
import { type SignUpHandlerDeps, signUpHandlers } from "./handlers/sign-up.ts";
import {
  type Cookie,
  coloursIn,
  cookieIn,
  hubHeaders,
  isFromOurPage,
  isTrustworthy,
  isVisit,
  pageHeaders,
  setCookie,
} from "./headers.ts";
import { answerHubFile, isHubFile } from "./hub-files.ts";
import { render, SCRIPT, STYLE } from "./layout.tsx";
import { Notices } from "./notices.ts";
import { askedOf, type EndpointDeps, makeEndpoints } from "./oauth/endpoints.ts";
import { Lookups } from "./oauth/lookups.ts";
import { challengeOf, stepUpOf } from "./oauth/metadata.ts";
import { plainPage } from "./pages/sign-in.tsx";
import { makeCall, type WebContext } from "./request-context.ts";
import { ROUTES } from "./routes.ts";
import { makeSignInOptions } from "./sign-in-options.ts";

const MAX_FORM_BYTES = 16 * 1024;
const FORM = "application/x-www-form-urlencoded";
const METHODS: readonly string[] = ["GET", "HEAD", "POST"];

export interface WebDeps extends Omit<ApplicationDeps, "users" | "oauth" | "lookups"> {
  operations: readonly Bound[];
  users: Pick<Users, "recognise" | "signIn" | "signUp" | "addresses" | "redeem" | "passkeys" | "identities">;
  oauth: ApplicationDeps["oauth"] & EndpointDeps["oauth"];
  billing: NoticeDeps["billing"];
  /** E-mails that one address may request per hour; 0: no limit. */
  letters: SignUpHandlerDeps["letters"];
  /** How applications make themselves known. */
  clients: EndpointDeps["clients"];
}

export interface WebDoor {
  /** Whether the path is a page's. */
  has(path: string): boolean;
  /** Never rejects. */
  answer(request: PageRequest): Promise<Response>;
  /** The challenge for an MCP client without a valid token, or without these scopes; null if sign-in is not possible. */
  challenge(lacks: readonly string[] | null, requestedUrl: URL): string | null;
  /**
   * The signed-in user, for a request of the API: null without a session's cookie. The returned function throws session_ended, and
   * foreign_request if the request is not from a page of ours.
   */
  sessionOf(headers: Headers): (() => Caller) | null;
}

export function makeWebDoor(deps: WebDeps): WebDoor {
  const { road, operations, users, log } = deps;
  const lookups = new Lookups();
  const handlers: Handlers = {
    ...outsideHandlers(deps),
    ...signUpHandlers(deps),
    ...accountHandlers(deps),
    ...wayHandlers(deps),
    ...memberHandlers(deps),
    ...dataHandlers(deps),
    ...endHandlers(deps),
    ...applicationHandlers({ ...deps, lookups }),
    ...billingHandlers(deps),
    ...promptHandlers(deps),
    ...hubHandlers(deps),
    ...locateHandlers(deps),
  };
  const pages = pagesOf(handlers);
  const notices = new Notices();
  const endpoints = makeEndpoints({ ...deps, lookups });
  const takeNotice = makeNotices(deps);
  const headers = { here: pageHeaders(STYLE, SCRIPT), out: pageHeaders(STYLE, SCRIPT, true) };
  // It changes once, when the port is known.
  let known = placeOf(deps.url());
  const place = () => {
    const url = deps.url();
    if (known.url !== url) known = placeOf(url);
    return known;
  };

  /** For a page request by another loopback name: the URL of the page at the canonical origin; else null. */
  const canonicalOf = ({ method, headers: requestHeaders, url }: PageRequest): string | null => {
    const { origin } = place();
    if (!isVisit(method, requestHeaders) || url.origin === origin || !originsOf(origin).includes(url.origin))
      return null;
    return origin + url.pathname + url.search;
  };

  const handlerOf = (path: string): Handler | undefined => pages.find((page) => page.is(path))?.handler;

  const responseOf = (outcome: Outcome, requestHeaders: Headers, visit?: WebContext): Response => {
    const { hub, leadsOut } = "page" in outcome ? outcome.page : {};
    const shown = new Headers(hub ? hubHeaders(hub.nonce) : leadsOut ? headers.out : headers.here);
    for (const [cookie, value] of Object.entries(outcome.cookies ?? ({} satisfies Cookies))) {
      shown.append("Set-Cookie", setCookie(cookie as Cookie, value ?? null, place().isSecure));
    }
    const visitor = visit?.offers.fresh ?? null;
    if (visitor !== null) shown.append("Set-Cookie", setCookie("visitor", visitor, place().isSecure));
    if ("page" in outcome) {
      const { page, retry_after_seconds: wait = null } = outcome;
      if (wait !== null) shown.set("Retry-After", String(Math.ceil(wait)));
      if (outcome.look_again_seconds !== undefined) shown.set("Refresh", String(outcome.look_again_seconds));
      const notice = visit?.isPost === false && page.who ? notices.take(visit.asked.session_id) : null;
      return new Response(render(page, notice, { hasHosts: deps.hasHosts(), colours: coloursIn(requestHeaders) }), {
        status: page.status ?? 200,
        headers: shown,
      });
    }
    if (outcome.said) notices.put(visit?.asked.session_id ?? null, outcome.said);
    shown.set("Location", outcome.to);
    return new Response(null, { status: 303, headers: shown });
  };

  /** If the page cannot be rendered, the error's page has its cookies: the session's secret may be new. */
  const answerWith = (outcome: Outcome, { headers: sent, request_id }: PageRequest, visit?: WebContext): Response => {
    try {
      return responseOf(outcome, sent, visit);
    } catch (error) {
      return responseOf({ ...errorReply(error, request_id, log), cookies: outcome.cookies ?? {} }, sent, visit);
    }
  };

  /** After a sign-in for an application, or for a page by its ID, redirects there. */
  const goingOn = (outcome: Outcome, { caller, request }: WebContext): Outcome => {
    if (caller || !("to" in outcome) || outcome.to !== INSIDE) return outcome;
    const to = placeIn(cookieIn(request.headers, "asked", place().isSecure));
    return to === null ? outcome : { ...outcome, to, cookies: { ...outcome.cookies, asked: null } };
  };

  /** Throws foreign_request, unsupported_media_type, body_too_large, invalid_body, method_not_allowed. */
  const visitOf = async (request: PageRequest): Promise<WebContext> => {
    const { method, ip, request_id } = request;
    const isOurs = isFromOurPage(request.headers, place().origin);
    const isPost = method === "POST";
    if (!METHODS.includes(method)) throw new ServiceError("method_not_allowed");
    if (isPost && !isOurs) {
      throw new ServiceError("foreign_request", {
        detail: "The form was sent by another site's page, or by a program.",
      });
    }
    // Before authentication: a form may arrive slowly, and the session end in the meantime.
    const form = isPost ? await readForm(request) : new Map<string, string>();
    const isKnown = isOurs || isVisit(method, request.headers);
    const visitWith = (secret: string | null): WebContext => {
      const recognise = () => {
        if (secret === null) throw new ServiceError("session_ended");
        return users.recognise(secret);
      };
      const caller = callerBy(recognise);
      const visitor = isKnown ? cookieIn(request.headers, "visitor", place().isSecure) : null;
      return {
        request,
        asked: {
          ip,
          request_id,
          user_agent: request.headers.get("user-agent"),
          network: networkOf(ip ?? ""),
          browser: cookieIn(request.headers, "browser", place().isSecure),
          visitor,
          session_id: caller?.session?.session_id ?? null,
        },
        caller,
        isPost,
        form,
        field: (name) => form.get(name) ?? "",
        call: makeCall(road, operations, request, recognise),
        offers: makeSignInOptions(users.passkeys, request.url, caller, visitor),
        proved: visitWith,
      };
    };
    return visitWith(isKnown ? cookieIn(request.headers, "session", place().isSecure) : null);
  };

  return {
    // If tokens could be intercepted in transit, none are issued and the endpoints are not advertised.
    has: (path) =>
      (place().isTrustworthy && endpoints.has(path)) ||
      (deps.billing.isOn && path === NOTICE_PATH) ||
      isHubFile(path) ||
      handlerOf(path) !== undefined,

    challenge: (lacks, requestedUrl) => {
      if (!place().isTrustworthy) return null;
      const url = askedOf(deps.url(), requestedUrl);
      return lacks === null ? challengeOf(url) : stepUpOf(url, lacks);
    },

    sessionOf: (requestHeaders) => {
      const secret = cookieIn(requestHeaders, "session", place().isSecure);
      if (secret === null) return null;
      return () => {
        if (!isFromOurPage(requestHeaders, place().origin)) throw new ServiceError("foreign_request");
        return users.recognise(secret);
      };
    },

    answer: async (request) => {
      const { pathname: path } = request.url;
      if (path === NOTICE_PATH && deps.billing.isOn) return await takeNotice(request);
      if (isHubFile(path)) return answerHubFile(path, request.headers);
      if (endpoints.has(path)) {
        road.begin.unknownGoesOn(request.ip);
        return await endpoints.answer(request);
      }
      let isUnknown = true;
      const answered = async (response: Response) => {
        if (isUnknown && response.status === 429) await road.begin.refused();
        return response;
      };
      try {
        const handler = handlerOf(path);
        if (!handler) throw new ServiceError("route_not_found");
        if (!place().isTrustworthy) return answerWith({ page: plainPage(place().host) }, request);
        const visit = await visitOf(request);
        isUnknown = visit.caller === null;
        const elsewhere = isUnknown ? canonicalOf(request) : null;
        if (elsewhere !== null) return answerWith({ to: elsewhere }, request);
        if (isUnknown) road.begin.unknownGoesOn(request.ip);
        return await answered(answerWith(goingOn(await handler(visit), visit), request, visit));
      } catch (error) {
        return await answered(answerWith(errorReply(error, request.request_id, log), request));
      }
    },
  };
}

interface ServedPage {
  is(path: string): boolean;
  handler: Handler;
}

/** Throws if the list of places and the handlers do not match: tests cover only the places on the list. */
function pagesOf(handlers: Handlers): ServedPage[] {
  const [listed, handled] = [Object.keys(ROUTES).sort().join(" "), Object.keys(handlers).sort().join(" ")];
  if (listed !== handled) throw new Error(`edge/web/routes.ts lists ${listed}; there are handlers for ${handled}`);
  return Object.entries(handlers).map(([path, handler]) => {
    const pattern = parsePath(path);
    return {
      is: (requestedPath) =>
        requestedPath.split("/").length === pattern.length && matchPath(pattern, requestedPath) !== null,
      handler,
    };
  });
}

/** The origin at which browsers reach the service, as far as it matters. */
function placeOf(text: string) {
  const url = new URL(text);
  const { origin, host, protocol } = url;
  return { url: text, origin, host, isSecure: protocol === "https:", isTrustworthy: isTrustworthy(url) };
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
  return new Map(new URLSearchParams(new TextDecoder().decode(await body(MAX_FORM_BYTES))));
}
