/** Handler of the prompts' page: fills in the names from its URL. */
import { FILLINGS, type Filling } from "../../../../shared/prompts/prompt.ts";
import { type Given, promptsPage } from "../pages/prompts.tsx";
import { accountOf, type HandlerDeps, type Handlers, inside } from "./handler.ts";

export function promptHandlers(deps: HandlerDeps): Handlers {
  return {
    "/prompts": inside(deps, async (visit) => {
      const { searchParams } = visit.request.url;
      // A link on another site fills in nothing: prompts that are copied from here are read by models.
      const isForeign = visit.request.headers.get("sec-fetch-site") === "cross-site";
      const names = isForeign ? [] : (Object.keys(FILLINGS) as Filling[]);
      const given: Given = Object.fromEntries(names.map((name) => [name, searchParams.get(name)?.slice(0, 200) ?? ""]));
      return { page: promptsPage(await accountOf(visit), deps.url(), given) };
    }),
  };
}
