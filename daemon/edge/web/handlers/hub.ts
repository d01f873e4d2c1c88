/** The hub's pages as the daemon serves them: the same for each path; the hub itself fetches the content. */
import { randomBytes } from "node:crypto";
import { hubPage } from "../pages/hub.tsx";
import { ROUTES } from "../routes.ts";
import { comingBack } from "./asked-place.ts";
import { accountOf, type Handler, type HandlerDeps, type Handlers, inside } from "./handler.ts";

export function hubHandlers(deps: HandlerDeps): Handlers {
  const shown = inside(deps, async (visit) => {
    const nonce = randomBytes(16).toString("base64");
    return {
      page: hubPage(await accountOf(visit), visit.request.url.pathname, {
        url: deps.url(),
        nonce,
        hasHosts: deps.hasHosts(),
      }),
    };
  });
  const page: Handler = async (visit) => {
    const { pathname, search } = visit.request.url;
    const outcome = await shown(visit);
    return visit.isPost ? outcome : comingBack(outcome, pathname + search);
  };
  return Object.fromEntries(Object.entries(ROUTES).flatMap(([path, { isHub }]) => (isHub ? [[path, page]] : [])));
}
