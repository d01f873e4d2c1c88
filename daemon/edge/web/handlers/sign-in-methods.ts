/** Handlers of the page for sign-in methods: passkeys, the password, and linked accounts. */

import { identityBegin, identityList, identityRemove } from "../../../../shared/api/people/identities.ts";
import { passkeyAdd, passkeyList, passkeyOptions, passkeyRemove } from "../../../../shared/api/people/passkeys.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { readAnswer } from "../../../domain/users/index.ts";
import type { FormReport } from "../layout.tsx";
import { waysPage } from "../pages/sign-in-methods.tsx";
import type { WebContext } from "../request-context.ts";
import type { SignInOption } from "../sign-in-options.ts";
import { accountOf, after, type HandlerDeps, type Handlers, inside, type Outcome, refusalOf } from "./handler.ts";

export function wayHandlers(deps: HandlerDeps): Handlers {
  const ways = async (visit: WebContext, report: FormReport = {}, offer: SignInOption | null = null) => {
    const list = await visit.call(passkeyList);
    const linked = await visit.call(identityList);
    const shown = {
      passkeys: list.ok ? list.body.items : [],
      offer,
      identities: linked.ok ? linked.body.items : [],
      elsewhere: deps.users.identities.name,
    };
    return waysPage(await accountOf(visit), shown, report);
  };

  const setPassword = async (visit: WebContext): Promise<Outcome> => {
    const session_id = visit.caller?.session?.session_id;
    if (session_id === undefined) throw new ServiceError("session_ended");
    try {
      const secret = await deps.users.signIn.setPassword(session_id, visit.field("password"), visit.asked);
      const done = "Password set. Your other sessions were signed out.";
      const outcome = await after(visit.proved(secret), { ok: true }, done, (report) => ways(visit, report));
      return { ...outcome, cookies: { session: secret } };
    } catch (error) {
      const { problem } = await refusalOf(deps, visit, error);
      return await after(visit, { ok: false, problem }, null, (report) => ways(visit, report));
    }
  };

  return {
    "/account/ways": inside(deps, async (visit) => {
      if (!visit.isPost) return { page: await ways(visit) };
      const { field } = visit;
      const page = (report: FormReport) => ways(visit, report);
      switch (field("do")) {
        case "password":
          return await setPassword(visit);
        case "begin": {
          const started = await visit.call(passkeyOptions);
          if (!started.ok) return await after(visit, started, null, page);
          return { page: await ways(visit, {}, visit.offers.of(started.body.options)) };
        }
        case "add": {
          const response = readAnswer(field("passkey")) ?? {};
          const added = await visit.call(passkeyAdd, { name: field("name").trim(), response });
          return await after(visit, added, "Passkey added.", page);
        }
        case "remove": {
          const removed = await visit.call(passkeyRemove, { passkey_id: field("passkey_id") });
          return await after(visit, removed, "Passkey removed. Your browser may still show it.", page);
        }
        case "link": {
          const started = await visit.call(identityBegin);
          return started.ok ? { to: started.body.url } : await after(visit, started, null, page);
        }
        case "unlink": {
          const removed = await visit.call(identityRemove, { identity_id: field("identity_id") });
          return await after(visit, removed, "Account unlinked.", page);
        }
        default:
          throw new ServiceError("invalid_body", { detail: "The form has no known action in field do." });
      }
    }),
  };
}
