/** Handlers of the applications' pages: authorizing one, by its request or its code, and signing it out. */
import { h } from "preact";
import { READ_SCOPES } from "../../../../shared/api/contract.ts";
import type { Problem } from "../../../../shared/api/errors.ts";
import { deviceDecide, grantCreate, grantEnd, grantList } from "../../../../shared/api/grants.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { isLoopback, type OAuth, placeOf, Refusal, SentBack } from "../../../domain/oauth/index.ts";
import { toProblem } from "../../pipeline/problem.ts";
import type { FormReport } from "../layout.tsx";
import type { Lookups } from "../oauth/lookups.ts";
import {
  AsksFrom,
  applicationsPage,
  BackAt,
  codePage,
  consentPage,
  decidedPage,
  GIVES,
  LASTS,
} from "../pages/applications.tsx";
import { deadEnd } from "../pages/sign-in.tsx";
import type { WebContext } from "../request-context.ts";
import { AUTHORIZE, comingBack, DEVICE } from "./asked-place.ts";
import { accountOf, after, type HandlerDeps, type Handlers, inside, type Outcome, refusalOf } from "./handler.ts";

/** More than any request has, and as much as a browser stores during a sign-in. */
const MAX_REQUEST_CHARACTERS = 2800;
/** Limit of a submitted request, which includes the place that the consent page names. */
const MAX_NAMED_CHARACTERS = 4096;

export interface ApplicationDeps extends HandlerDeps {
  oauth: Pick<OAuth, "read" | "devices">;
  lookups: Lookups;
}

/** `BCDF-GHJK`, however it was typed. */
const shownCode = (typed: string): string => {
  const letters = typed.toUpperCase().replaceAll(/[^A-Z0-9]/g, "");
  return letters.length === 8 ? `${letters.slice(0, 4)}-${letters.slice(4)}` : typed;
};

export function applicationHandlers(deps: ApplicationDeps): Handlers {
  const { oauth, log, lookups } = deps;
  const read = (visit: WebContext, request: string) =>
    oauth.read(new URLSearchParams(request), lookups.of(visit.request.ip));

  const applications = async (visit: WebContext, report: FormReport = {}) => {
    const list = await visit.call(grantList);
    return applicationsPage(await accountOf(visit), list.ok ? list.body.items : [], `${deps.url()}/mcp`, report);
  };

  /** An error of an application's request is sent to the application if its redirect URI is known to be its own, else shown to the user. */
  const refuse = (visit: WebContext, error: unknown): Outcome => {
    if (error instanceof SentBack) return { to: error.to };
    if (!(error instanceof Refusal)) throw error;
    const wrong = new ServiceError("invalid_body", {
      detail: error.description,
      hint: "Start again from the application.",
    });
    const problem = toProblem(wrong, visit.request.request_id, log);
    return { page: deadEnd("Invalid authorization request", problem) };
  };

  const consent = async (visit: WebContext, request: string, problem: Problem | null): Promise<Outcome> => {
    const { client, redirect_uri, scopes } = await read(visit, request);
    const place = h(BackAt, { place: placeOf(redirect_uri), isLoopback: isLoopback(redirect_uri) });
    // The place shown is the place granted, even if the application's client metadata document names another by then.
    const named = new URLSearchParams(request);
    named.set("redirect_uri", redirect_uri);
    const along = { request: named.toString() };
    const shown = { name: client.name, scopes, place, action: AUTHORIZE, along, problem };
    return { page: consentPage(await accountOf(visit), shown) };
  };

  const device = async (visit: WebContext, problem: Problem | null): Promise<Outcome> => {
    const code = visit.field("user_code") || (visit.request.url.searchParams.get("user_code") ?? "").slice(0, 16);
    const account = await accountOf(visit);
    if (!visit.isPost) return { page: codePage(account, code) };
    const found = await oauth.devices.look(code, lookups.of(visit.request.ip));
    if (!found) {
      // Guessing of codes is limited like guessing of passwords.
      const refusal = await refusalOf(deps, visit, new ServiceError("device_not_found"));
      return { page: codePage(account, code, refusal.problem), retry_after_seconds: refusal.retry_after_seconds };
    }
    const { client_name: name, scopes, ip, created_at } = found;
    const along = { user_code: code };
    return {
      page: consentPage(account, {
        name,
        scopes,
        place: h(AsksFrom, { ip, since: created_at, code: shownCode(code) }),
        action: DEVICE,
        along,
        problem,
      }),
    };
  };

  return {
    [AUTHORIZE]: async (visit) => {
      const request = visit.isPost ? visit.field("request") : visit.request.url.search.slice(1);
      if (request.length > (visit.isPost ? MAX_NAMED_CHARACTERS : MAX_REQUEST_CHARACTERS)) {
        return refuse(visit, new Refusal("invalid_request", "The authorization request is too long."));
      }
      try {
        // Errors of the request are reported before a sign-in for it.
        const asking = await read(visit, request);
        const decide = inside(deps, async (innerVisit) => {
          if (!innerVisit.isPost) return await consent(innerVisit, request, null);
          if (innerVisit.field("do") === "deny") return { to: asking.refused };
          const answer = await innerVisit.call(grantCreate, { request, ...narrowing(innerVisit) });
          if (answer.ok) return { to: answer.body.location };
          if (answer.problem.code === "proof_required") return await after(innerVisit, answer, null, never);
          return await consent(innerVisit, request, answer.problem);
        });
        return comingBack(await decide(visit), `${AUTHORIZE}?${request}`);
      } catch (error) {
        return refuse(visit, error);
      }
    },

    [DEVICE]: async (visit) => {
      const outcome = await inside(deps, async (innerVisit) => {
        if (!innerVisit.isPost || innerVisit.field("step") === "look") return await device(innerVisit, null);
        const allow = innerVisit.field("do") === "allow";
        const body = { user_code: innerVisit.field("user_code"), allow, ...(allow ? narrowing(innerVisit) : {}) };
        const answer = await innerVisit.call(deviceDecide, body);
        if (answer.ok) {
          return { page: decidedPage(await accountOf(innerVisit), answer.body.client_name, answer.body.allowed) };
        }
        if (answer.problem.code === "proof_required") return await after(innerVisit, answer, null, never);
        return await device(innerVisit, answer.problem);
      })(visit);
      const query = visit.request.url.search.slice(1, MAX_REQUEST_CHARACTERS);
      return visit.isPost ? outcome : comingBack(outcome, `${DEVICE}?${query}`);
    },

    "/account/applications": inside(deps, async (visit) => {
      if (!visit.isPost) return { page: await applications(visit) };
      const ended = await visit.call(grantEnd, { grant_id: visit.field("grant_id") });
      const done = "Access revoked, and everything the application had open was closed.";
      return await after(visit, ended, done, (report) => applications(visit, report));
    }),
  };
}

/** If a proof is required, only the page for it is shown. */
const never = async (): Promise<never> => {
  throw new Error("identity confirmation was required, but a different page was rendered");
};

/** Only the choices that the form offers. Throws validation_failed. */
function narrowing({ field }: WebContext) {
  const [gives, lasts] = [field("gives"), field("lasts")];
  const errors = [
    ...(GIVES.some(([value]) => value === gives) ? [] : ["gives"]),
    ...(LASTS.some(([value]) => value === lasts) ? [] : ["lasts"]),
  ].map((name) => ({ field: name, code: "choice", message: "must be one of the choices" }));
  if (errors.length > 0) throw new ServiceError("validation_failed", { errors });
  const rooms = field("rooms")
    .split(/[\s,]+/)
    .filter((name) => name !== "");
  return {
    ...(gives === "read" ? { scopes: [...READ_SCOPES] } : {}),
    ...(rooms.length > 0 ? { room_ids: rooms } : {}),
    ...(lasts === "" ? {} : { expires_in_seconds: Number(lasts) }),
  };
}
