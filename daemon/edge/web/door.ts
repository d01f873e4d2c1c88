/**
 * Owns the web's door: which page a path is, who visits it, and what its form asks for. A form is a page's way to an operation of the
 * list; what an account may is decided on the road, as for every other door.
 *
 *   path → who is it → does a page of ours ask → the form's fields → operations → the page, or where to go on
 */
import {
  accountGet,
  accountPassword,
  accountProve,
  accountUpdate,
  sessionEnd,
  sessionList,
} from "../../../shared/api/account.ts";
import { READ_SCOPES } from "../../../shared/api/contract.ts";
import type { Problem } from "../../../shared/api/errors.ts";
import {
  invitationCreate,
  invitationDelete,
  invitationList,
  memberList,
  memberRemove,
  memberUpdate,
  type Role,
} from "../../../shared/api/members.ts";
import { keyCreate, keyList, keyRevoke, keyRotate } from "../../../shared/api/orgs.ts";
import type { OrgId, UserId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Bound, Caller } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Asked as From, SignedIn, Users } from "../../domain/users/index.ts";
import { retryAfterOf, toProblem } from "../problem.ts";
import type { Road } from "../run.ts";
import { isFromOurPage, isVisit, pageHeaders, sessionCookie, sessionIn } from "./headers.ts";
import { type Page, render, SCRIPT, STYLE } from "./layout.ts";
import { keysPage, type NewKey, profilePage, proofPage, sessionsPage, type Told } from "./pages/account.ts";
import { membersPage } from "./pages/members.ts";
import { deadEnd, invitePage, linkPage, setupPage, signInPage } from "./pages/outside.ts";
import { type Asked, makeCall, type Visit } from "./visit.ts";

const MOST_FORM_BYTES = 16 * 1024;
const FORM = "application/x-www-form-urlencoded";
const INVITE = /^\/invite\/([\w-]{1,64})$/;

export interface WebDeps {
  road: Road;
  operations: readonly Bound[];
  users: Pick<Users, "recognise" | "signIn">;
  orgName(orgId: OrgId): string;
  /** Where browsers find us, without a slash at its end. */
  url(): string;
  log: Log;
}

/** What a page's handler comes to: a page, or where to go on, and what becomes of the session's cookie. */
type Outcome =
  | { page: Page; cookie?: string | null; retry_after_seconds?: number | null }
  | { to: string; cookie?: string | null };
type Handler = (visit: Visit) => Promise<Outcome>;

export interface WebDoor {
  /** Whether the path is a page's. */
  has(path: string): boolean;
  /** Never rejects. */
  answer(asked: Asked): Promise<Response>;
  /**
   * Who is signed in, for a request of the API: null without a session's cookie. Throws foreign_request where no page of ours asks;
   * what is returned throws session_ended.
   */
  sessionOf(headers: Headers): (() => Caller) | null;
}

export function makeWebDoor(deps: WebDeps): WebDoor {
  const { road, operations, users, log } = deps;
  const pages = pagesOf(deps);
  const isSecure = () => deps.url().startsWith("https:");
  const origin = () => new URL(deps.url()).origin;
  const headers = pageHeaders(STYLE, SCRIPT);

  const handlerOf = (path: string): Handler | null => {
    if (INVITE.test(path)) return pages["/invite"] ?? null;
    return path === "/invite" ? null : (pages[path] ?? null);
  };

  const answerWith = (outcome: Outcome): Response => {
    const shown = new Headers(headers);
    if (outcome.cookie !== undefined) shown.append("Set-Cookie", sessionCookie(outcome.cookie, isSecure()));
    if ("page" in outcome) {
      const { retry_after_seconds: wait = null } = outcome;
      if (wait !== null) shown.set("Retry-After", String(Math.ceil(wait)));
      return new Response(render(outcome.page), { status: outcome.page.status ?? 200, headers: shown });
    }
    shown.set("Location", outcome.to);
    return new Response(null, { status: 303, headers: shown });
  };

  return {
    has: (path) => handlerOf(path) !== null,

    sessionOf: (asked) => {
      const secret = sessionIn(asked, isSecure());
      if (secret === null) return null;
      return () => {
        if (!isFromOurPage(asked, origin())) throw new ServiceError("foreign_request");
        return users.recognise(secret);
      };
    },

    answer: async (asked) => {
      const handler = handlerOf(asked.url.pathname);
      try {
        if (!handler) throw new ServiceError("route_not_found");
        const { method } = asked;
        if (method !== "GET" && method !== "HEAD" && method !== "POST") throw new ServiceError("method_not_allowed");
        const isOurs = isFromOurPage(asked.headers, origin());
        if (method === "POST" && !isOurs) {
          throw new ServiceError("foreign_request", {
            detail: "The form was sent by another site's page, or by a program.",
          });
        }
        const secret = isOurs || isVisit(method, asked.headers) ? sessionIn(asked.headers, isSecure()) : null;
        const recognise = () => {
          if (secret === null) throw new ServiceError("session_ended");
          return users.recognise(secret);
        };
        const caller = callerBy(recognise);
        const form = method === "POST" ? await readForm(asked) : new Map<string, string>();
        const visit: Visit = { asked, caller, form, call: makeCall(road, operations, asked, recognise) };
        return answerWith(await handler(visit));
      } catch (error) {
        const problem = toProblem(error, asked.request_id, log);
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
async function readForm({ headers, body }: Asked): Promise<Map<string, string>> {
  if (headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() !== FORM) {
    throw new ServiceError("unsupported_media_type", { hint: "Send the page's form." });
  }
  return new Map(new URLSearchParams(new TextDecoder().decode(await body(MOST_FORM_BYTES))));
}

const fromOf = ({ ip, request_id, headers }: Asked): From => ({
  ip,
  request_id,
  user_agent: headers.get("user-agent"),
});

function pagesOf({ users, road, orgName, url, log }: WebDeps): Record<string, Handler> {
  const { signIn } = users;

  /** Lets somebody in, or shows the page again with what was wrong. */
  const letIn = async (
    visit: Visit,
    attempt: () => Promise<SignedIn>,
    again: (problem: Problem) => Page,
  ): Promise<Outcome> => {
    try {
      return { to: "/account", cookie: (await attempt()).secret };
    } catch (error) {
      const { asked } = visit;
      // Counted by address, and on record, as for a bad key.
      const isBad =
        error instanceof ServiceError && (error.code === "sign_in_failed" || error.code === "link_not_found");
      const refuse = () => {
        throw error;
      };
      const { refusal } = isBad
        ? road.identify({
            authorization: null,
            source: "web",
            request_id: asked.request_id,
            ip: asked.ip,
            recognise: refuse,
          })
        : { refusal: error };
      if (isBad) await road.failuresWritten();
      const problem = toProblem(refusal, asked.request_id, log);
      return {
        page: { ...again(problem), status: problem.status },
        retry_after_seconds: retryAfterOf(refusal, problem),
      };
    }
  };

  const inside = (handler: Handler): Handler => {
    return async (visit) => {
      if (!visit.caller) return { to: "/signin" };
      const proof = visit.form.get("proof");
      if (proof !== undefined) {
        const proved = await visit.call(accountProve, { password: proof });
        if (!proved.ok) return askProof(visit, proved.problem);
      }
      return await handler(visit);
    };
  };

  const account = async (visit: Visit) => {
    const answer = await visit.call(accountGet);
    if (!answer.ok) throw new ServiceError(answer.problem.code);
    return answer.body;
  };

  const askProof = async (visit: Visit, problem: Problem | null): Promise<Outcome> => ({
    page: proofPage(await account(visit), visit.asked.url.pathname, visit.form, problem),
  });

  /** Shows the page with what came of its form; what wants a proof asks for that first. */
  const after = async (
    visit: Visit,
    answer: { ok: true } | { ok: false; problem: Problem },
    done: string,
    page: (told: Told) => Promise<Page>,
  ): Promise<Outcome> => {
    if (answer.ok) return { page: await page({ done }) };
    if (answer.problem.code === "proof_required") return await askProof(visit, null);
    return { page: { ...(await page({ problem: answer.problem })), status: answer.problem.status } };
  };

  const profile = async (visit: Visit, told: Told = {}) => profilePage(await account(visit), told);

  const keys = async (visit: Visit, made: NewKey | null, told: Told = {}) => {
    const list = await visit.call(keyList, { org_id: "self", limit: 1000 });
    const items = list.ok ? list.body.items.filter(({ state }) => state === "active") : [];
    return keysPage(await account(visit), items, crypto.randomUUID(), made, told);
  };

  const sessions = async (visit: Visit, told: Told = {}) => {
    const list = await visit.call(sessionList);
    return sessionsPage(await account(visit), list.ok ? list.body.items : [], told);
  };

  const members = async (visit: Visit, link: string | null, told: Told = {}) => {
    const list = await visit.call(memberList, { org_id: "self" });
    const open = await visit.call(invitationList, { org_id: "self" });
    return membersPage(
      await account(visit),
      list.ok ? list.body.items : [],
      open.ok ? open.body.items : null,
      link,
      told,
    );
  };

  return {
    "/signin": async (visit) => {
      const { form, asked } = visit;
      if (asked.method !== "POST") return visit.caller ? { to: "/account" } : { page: signInPage(form) };
      const [email = "", password = ""] = [form.get("email"), form.get("password")];
      return await letIn(
        visit,
        () => signIn.byPassword(email, password, fromOf(asked)),
        (problem) => signInPage(form, problem),
      );
    },

    "/signout": async (visit) => {
      if (visit.asked.method !== "POST") throw new ServiceError("method_not_allowed");
      if (visit.caller) await visit.call(sessionEnd, { session_id: "this" });
      return { to: "/signin", cookie: null };
    },

    "/setup": async (visit) => {
      const { form, asked } = visit;
      const token = form.get("token") ?? "";
      if (asked.method !== "POST") return { page: linkPage(form) };
      if (form.get("step") !== "done") {
        const kindOf = () => signIn.look(token.trim(), ["setup", "user"]).kind;
        try {
          return { page: setupPage(kindOf() === "user" ? "user" : "setup", new Map([["token", token.trim()]])) };
        } catch (error) {
          return await letIn(
            visit,
            () => Promise.reject(error),
            (problem) => linkPage(new Map(), problem),
          );
        }
      }
      const person = { email: form.get("email"), name: form.get("name"), password: form.get("password") ?? "" };
      const kind = form.has("email") ? "setup" : "user";
      return await letIn(
        visit,
        () => signIn.byLink(token, [kind], person, fromOf(asked)),
        (problem) => setupPage(kind, form, problem),
      );
    },

    "/invite": async (visit) => {
      const { form, asked, caller } = visit;
      const token = INVITE.exec(asked.url.pathname)?.[1] ?? "";
      const link = signIn.look(token, ["invitation"]);
      const { org_id, role, email } = link;
      const signedInAs = caller && (email === null || asked.method === "POST") ? caller.name : null;
      const invited = { org: org_id ? orgName(org_id) : "", role: role ?? "viewer", signedInAs, email };
      if (asked.method !== "POST") return { page: invitePage(token, invited, form) };
      const from = fromOf(asked);
      const person = { email: form.get("email"), name: form.get("name"), password: form.get("password") ?? "" };
      const asMe = form.get("as") === "me" && caller ? (caller.key_id as string as UserId) : null;
      return await letIn(
        visit,
        () => (asMe ? signIn.take(token, asMe, from) : signIn.byLink(token, ["invitation"], person, from)),
        (problem) => invitePage(token, invited, form, problem),
      );
    },

    "/account": inside(async (visit) => {
      const { form, asked } = visit;
      if (asked.method !== "POST") return { page: await profile(visit) };
      const page = (told: Told) => profile(visit, told);
      switch (form.get("do")) {
        case "password":
          return await after(
            visit,
            await visit.call(accountPassword, { password: form.get("password") ?? "" }),
            "Your password is set, and your other sessions have ended.",
            page,
          );
        case "org":
          return await after(
            visit,
            await visit.call(accountUpdate, { org_id: form.get("org_id") ?? "" }),
            "You look at another organization now.",
            page,
          );
        default:
          return await after(
            visit,
            await visit.call(accountUpdate, { name: (form.get("name") ?? "").trim() }),
            "Your name is saved.",
            page,
          );
      }
    }),

    "/account/keys": inside(async (visit) => {
      const { form, asked } = visit;
      if (asked.method !== "POST") return { page: await keys(visit, null) };
      const [key_id = "", once = null] = [form.get("key_id"), form.get("once")];
      if (form.get("do") === "revoke") {
        const revoked = await visit.call(keyRevoke, { org_id: "self", key_id });
        return await after(visit, revoked, "The key has ended, with all that was opened by it.", (told) =>
          keys(visit, null, told),
        );
      }
      const ends = Number(form.get("ends") || 0);
      const answer =
        form.get("do") === "rotate"
          ? await visit.call(keyRotate, { org_id: "self", key_id }, once)
          : await visit.call(
              keyCreate,
              {
                org_id: "self",
                name: (form.get("name") ?? "").trim(),
                ...(form.get("may") === "read" ? { scopes: [...READ_SCOPES] } : {}),
                ...(ends > 0 ? { expires_in_seconds: ends } : {}),
              },
              once,
            );
      // A page that is loaded again does not show it again.
      if (answer.ok && answer.replayed) return { to: "/account/keys" };
      const made = answer.ok ? { url: url(), key: answer.body.key, name: answer.body.name } : null;
      return await after(visit, answer, "The key is made.", (told) => keys(visit, made, { ...told, done: null }));
    }),

    "/account/sessions": inside(async (visit) => {
      if (visit.asked.method !== "POST") return { page: await sessions(visit) };
      const ended = await visit.call(sessionEnd, { session_id: visit.form.get("session_id") ?? "" });
      return await after(visit, ended, "It has ended, with all that was open there.", (told) => sessions(visit, told));
    }),

    "/org/members": inside(async (visit) => {
      const { form, asked } = visit;
      if (asked.method !== "POST") return { page: await members(visit, null) };
      const page = (told: Told) => members(visit, null, told);
      const [org_id, user_id = ""] = ["self", form.get("user_id")];
      switch (form.get("do")) {
        case "role":
          return await after(
            visit,
            await visit.call(memberUpdate, { org_id, user_id, role: form.get("role") as Role }),
            "The role is set.",
            page,
          );
        case "remove": {
          const removed = await visit.call(memberRemove, { org_id, user_id });
          if (removed.ok && user_id === visit.caller?.key_id) return { to: "/signin" };
          return await after(visit, removed, "They are removed, and their keys and sessions here have ended.", page);
        }
        case "withdraw": {
          const invitation_id = form.get("invitation_id") ?? "";
          return await after(
            visit,
            await visit.call(invitationDelete, { org_id, invitation_id }),
            "The invitation is withdrawn.",
            page,
          );
        }
        default: {
          const email = (form.get("email") ?? "").trim();
          const made = await visit.call(invitationCreate, {
            org_id,
            role: form.get("role") as Role,
            ...(email ? { email } : {}),
          });
          const link = made.ok ? made.body.url : null;
          return await after(visit, made, "", (told) => members(visit, link, { ...told, done: null }));
        }
      }
    }),
  };
}
