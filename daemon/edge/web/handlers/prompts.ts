/** Owns what the page of prompts does: it fills in the names that its address has. */
import { FILLINGS, type Filling } from "../../../../shared/prompts/prompt.ts";
import { type Given, promptsPage } from "../pages/prompts.ts";
import { accountOf, type HandlerDeps, type Handlers, inside } from "./handler.ts";

export function promptHandlers(deps: HandlerDeps): Handlers {
  return {
    "/prompts": inside(deps, async (visit) => {
      const { searchParams } = visit.request.url;
      // A link on another site fills in nothing: what is copied from here is read by models.
      const isForeign = visit.request.headers.get("sec-fetch-site") === "cross-site";
      const names = isForeign ? [] : (Object.keys(FILLINGS) as Filling[]);
      const given: Given = Object.fromEntries(names.map((name) => [name, searchParams.get(name)?.slice(0, 200) ?? ""]));
      return { page: promptsPage(await accountOf(visit), deps.url(), given) };
    }),
  };
}
