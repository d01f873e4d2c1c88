/** Redirect from an ID to its page. */
import { locate } from "../../../../shared/api/locate.ts";
import { deadEnd } from "../pages/sign-in.tsx";
import { comingBack } from "./asked-place.ts";
import { type HandlerDeps, type Handlers, inside, type Outcome } from "./handler.ts";

export function locateHandlers(deps: HandlerDeps): Handlers {
  return {
    "/go/{id}": async (visit) => {
      const { pathname } = visit.request.url;
      const outcome = await inside(deps, async (innerVisit): Promise<Outcome> => {
        const answer = await innerVisit.call(locate, { id: decodeURIComponent(pathname.slice("/go/".length)) });
        if (answer.ok) return { to: answer.body.path };
        const { problem } = answer;
        return { page: deadEnd(problem.title, problem, "/rooms") };
      })(visit);
      return visit.isPost ? outcome : comingBack(outcome, pathname);
    },
  };
}
