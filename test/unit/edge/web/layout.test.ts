/** The navigation of the pages, as the daemon marks it: before a script runs, and where none does. */
import { expect, test } from "vitest";
import { type Page, render } from "../../../../daemon/edge/web/layout.tsx";
import { sessionsPage } from "../../../../daemon/edge/web/pages/account.tsx";
import { hubPage } from "../../../../daemon/edge/web/pages/hub.tsx";
import { promptsPage } from "../../../../daemon/edge/web/pages/prompts.tsx";

const ACCOUNT = {
  name: "Ada",
  role: "owner",
  org_id: "org_1",
  organizations: [{ org_id: "org_1", name: "Acme" }],
} as never;
const hubAt = (path: string) => hubPage(ACCOUNT, path, { url: "http://a.example", nonce: "", hasHosts: true });

test.each<[string, Page, string[]]>([
  ["home", hubAt("/"), ["/"]],
  ["the rooms", hubAt("/rooms"), ["/rooms"]],
  ["a room", hubAt("/rooms/x"), ["/rooms"]],
  ["a tab of an agent", hubAt("/rooms/x/agents/worker/commands"), ["/rooms"]],
  ["a page of the hub that the rail does not list", hubAt("/webhooks"), []],
  ["the prompts", promptsPage(ACCOUNT, "http://a.example", { goal: "", agents: "" } as never), ["/prompts"]],
  ["a page of the account", sessionsPage(ACCOUNT, []), ["/account", "/account/sessions"]],
  ["a page of the account without a tab", { ...sessionsPage(ACCOUNT, []), at: undefined } as never, ["/account"]],
])("of %s, the current links are those that lead to it", (_, page, links) => {
  const current = [...render(page, null, { hasHosts: true }).matchAll(/<a href="([^"]*)" aria-current="page"/g)];
  expect(current.map(([, path]) => path)).toEqual(links);
});
