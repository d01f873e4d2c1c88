/** Handlers of the account's pages: the profile, API keys, sessions. */

import { READ_SCOPES } from "../../../../shared/api/contract.ts";
import { type KeyRecord, keyCreate, keyList, keyRevoke, keyRotate } from "../../../../shared/api/orgs.ts";
import { accountUpdate, sessionEnd, sessionList } from "../../../../shared/api/people/account.ts";
import { memberList } from "../../../../shared/api/people/members.ts";
import { usage } from "../../../../shared/api/usage.ts";
import { loopTime, Pieces } from "../../../core/loop/index.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { FormReport, Page } from "../layout.tsx";
import { cursorOf, type ListPage, MAX_ROWS } from "../list-page.tsx";
import { ENDS, keysPage, MAY, type NewKey, profilePage, sessionsPage } from "../pages/account.tsx";
import type { OperationResult, WebContext } from "../request-context.ts";
import { accountOf, after, type HandlerDeps, type Handlers, inside, refusalOf } from "./handler.ts";

/** Reads of the list for one page: any number of ended keys may lie between active ones. */
const MAX_READS = 10;

export function accountHandlers(deps: HandlerDeps): Handlers {
  const profile = async (visit: WebContext, report: FormReport = {}) => {
    const used = await visit.call(usage, { org_id: "self" });
    const shown = { hasMail: deps.users.addresses.isOn, usage: used.ok ? used.body : null };
    return profilePage(await accountOf(visit), shown, report);
  };

  const keys = async (visit: WebContext, made: NewKey | null, report: FormReport = {}) => {
    const list = await visit.call(memberList, { org_id: "self" });
    const names = new Map((list.ok ? list.body.items : []).map(({ user_id, name }) => [user_id, name]));
    const shown = { keys: await activeKeys(visit), names, made, once: crypto.randomUUID() };
    return keysPage(await accountOf(visit), shown, report);
  };

  const sessions = async (visit: WebContext, report: FormReport = {}) => {
    const list = await visit.call(sessionList);
    return sessionsPage(await accountOf(visit), list.ok ? list.body.items : [], report);
  };

  /** Sends an e-mail to the address that the user would like to use. */
  const askAddress = async (visit: WebContext, page: (report: FormReport) => Promise<Page>) => {
    const session_id = visit.caller?.session?.session_id;
    if (session_id === undefined) throw new ServiceError("session_ended");
    try {
      await deps.users.addresses.ask(session_id, visit.field("email"), visit.asked);
      return await after(
        visit,
        { ok: true },
        "A confirmation e-mail is on its way. The address changes when you open its link.",
        page,
      );
    } catch (error) {
      const { problem } = await refusalOf(deps, visit, error);
      return await after(visit, { ok: false, problem }, null, page);
    }
  };

  return {
    "/account": inside(deps, async (visit) => {
      if (!visit.isPost) return { page: await profile(visit) };
      const page = (report: FormReport) => profile(visit, report);
      switch (visit.field("do")) {
        case "email":
          return await askAddress(visit, page);
        case "org": {
          const changed = await visit.call(accountUpdate, { org_id: visit.field("org_id") });
          return await after(visit, changed, "Organization switched.", page);
        }
        default: {
          const changed = await visit.call(accountUpdate, { name: visit.field("name").trim() });
          return await after(visit, changed, "Name saved.", page);
        }
      }
    }),

    "/account/keys": inside(deps, async (visit) => {
      if (!visit.isPost) return { page: await keys(visit, null) };
      const { field } = visit;
      const page = (report: FormReport) => keys(visit, null, report);
      if (field("do") === "revoke") {
        const revoked = await visit.call(keyRevoke, { org_id: "self", key_id: field("key_id") });
        return await after(visit, revoked, "The key was revoked, and everything opened with it was closed.", page);
      }
      const once = field("once") || null;
      const answer =
        field("do") === "rotate"
          ? await visit.call(keyRotate, { org_id: "self", key_id: field("key_id") }, once)
          : await visit.call(keyCreate, { org_id: "self", ...askedKey(visit) }, once);
      if (!answer.ok) return await after(visit, answer, null, page);
      // A reloaded page does not show the key again.
      if (answer.replayed) return { to: "/account/keys" };
      const { key, name } = answer.body;
      return { page: await keys(visit, { url: deps.url(), key, name }) };
    }),

    "/account/sessions": inside(deps, async (visit) => {
      if (!visit.isPost) return { page: await sessions(visit) };
      const ended = await visit.call(sessionEnd, { session_id: visit.field("session_id") });
      return await after(visit, ended, "Signed out, and everything open in the session was closed.", (report) =>
        sessions(visit, report),
      );
    }),
  };
}

/** Only the choices that the form offers: an unknown value must not come to mean full access, or no expiry. Throws validation_failed. */
function askedKey({ field }: WebContext) {
  const [may, ends] = [field("may"), field("ends")];
  const errors = [
    ...(MAY.some(([value]) => value === may) ? [] : ["may"]),
    ...(ENDS.some(([value]) => value === ends) ? [] : ["ends"]),
  ].map((name) => ({ field: name, code: "choice", message: "must be one of the choices" }));
  if (errors.length > 0) throw new ServiceError("validation_failed", { errors });
  return {
    name: field("name").trim(),
    ...(may === "read" ? { scopes: [...READ_SCOPES] } : {}),
    ...(ends === "" ? {} : { expires_in_seconds: Number(ends) }),
  };
}

/** A page of the active keys: fewer, or none, if there are many ended ones between them. */
async function activeKeys(visit: WebContext): Promise<ListPage<KeyRecord>> {
  const pieces = new Pieces(loopTime, loopTime.owner, keyList.name, { signal: visit.request.signal });
  const items: KeyRecord[] = [];
  let cursor = cursorOf(visit, "keys");
  for (let reads = 0; reads < MAX_READS && items.length < MAX_ROWS; reads++) {
    const list: OperationResult<typeof keyList> = await visit.call(keyList, {
      org_id: "self",
      limit: MAX_ROWS - items.length,
      ...(cursor && { cursor }),
    });
    if (!list.ok) return { items, next_cursor: null };
    items.push(...list.body.items.filter(({ state }) => state === "active"));
    cursor = list.body.next_cursor;
    if (cursor === null) break;
    await pieces.next();
  }
  return { items, next_cursor: cursor };
}
