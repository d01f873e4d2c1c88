/** Handler of the personal data page: shows all stored data, and deletes the account. */
import { accountDelete, accountExport } from "../../../../shared/api/people/account.ts";
import { inPieces, loopTime, Pieces } from "../../../core/loop/index.ts";
import type { FormReport } from "../layout.tsx";
import { type LongText, longText } from "../long-text.ts";
import { dataPage } from "../pages/data.tsx";
import type { WebContext } from "../request-context.ts";
import { accountOf, after, type HandlerDeps, type Handlers, inside } from "./handler.ts";

export function dataHandlers(deps: HandlerDeps): Handlers {
  const data = async (visit: WebContext, kept: LongText | null, report: FormReport = {}) =>
    dataPage(await accountOf(visit), kept, report);

  return {
    "/account/data": inside(deps, async (visit) => {
      if (!visit.isPost) return { page: await data(visit, null) };
      const page = (report: FormReport) => data(visit, null, report);
      if (visit.field("do") === "forget") {
        const deleted = await visit.call(accountDelete, { email: visit.field("email").trim() });
        return deleted.ok ? { to: "/signin", cookies: { session: null } } : await after(visit, deleted, null, page);
      }
      const shown = await visit.call(accountExport);
      if (!shown.ok) return await after(visit, shown, null, page);
      const pieces = new Pieces(loopTime, loopTime.owner, accountExport.name, { signal: visit.request.signal });
      return { page: await data(visit, await inPieces(longText(shown.json), pieces)) };
    }),
  };
}
