/** Handler of the page that deletes an organization. */

import { orgDelete } from "../../../../shared/api/people/org-end.ts";
import { roomList } from "../../../../shared/api/rooms.ts";
import type { FormReport } from "../layout.tsx";
import { endPage } from "../pages/org-end.tsx";
import type { WebContext } from "../request-context.ts";
import { accountOf, after, type HandlerDeps, type Handlers, inside, type Outcome } from "./handler.ts";

const LOOK_AGAIN_SECONDS = 2;
const MAX_ROOMS = 1000;

export function endHandlers(deps: HandlerDeps): Handlers {
  const end = async (visit: WebContext, report: FormReport = {}) => {
    const rooms = await visit.call(roomList, { limit: MAX_ROOMS });
    return endPage(await accountOf(visit), rooms.ok ? rooms.body.items.length : 0, report);
  };
  const shown = async (visit: WebContext): Promise<Outcome> => {
    const { page, isEnding } = await end(visit);
    return isEnding ? { page, look_again_seconds: LOOK_AGAIN_SECONDS } : { page };
  };

  return {
    "/org/end": inside(deps, async (visit) => {
      if (!visit.isPost) return await shown(visit);
      const ended = await visit.call(orgDelete, { org_id: "self", org_name: visit.field("org_name") });
      return await after(visit, ended, null, async (report) => (await end(visit, report)).page);
    }),
  };
}
