/** Page of prompts: how to connect a client, and prompts with names filled in. It has no actions: everything is to be copied. */
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { PROMPTS } from "../../../../shared/prompts/catalogue.ts";
import { clientWays } from "../../../../shared/prompts/clients.ts";
import { FILLINGS, type Filling, fill, KINDS } from "../../../../shared/prompts/prompt.ts";
import { html, type Markup } from "../../../core/markup.ts";
import { field, type Page } from "../layout.ts";
import { whoOf } from "./account.ts";

export type Given = Partial<Record<Filling, string>>;

const HEADINGS = {
  ask: "Ask",
  diagnose: "Diagnose (read only)",
  debug: "Fix",
  plan: "Plan and set up",
} as const;
const LABELS: Record<Filling, string> = { room: "Room", agent: "Agent", goal: "Goal", agents: "Number of agents" };

function toCopy(id: string, text: string): Markup {
  return html`<pre id="${id}">${text}</pre><p><button class="button" type="button" data-copy="${id}" hidden>Copy</button></p>`;
}

export function promptsPage(account: AccountRecord, url: string, given: Given): Page {
  const clients = clientWays(url).map(({ client, signsIn, hasKey, opens }, n) => {
    const open = opens ? html` Or <a href="${opens}">open it there</a>.` : "";
    return html`<details class="copied"><summary class="line">${client}</summary>
<p>To sign in, put this into ${signsIn.into}. It opens a page of this service on which you authorize it.${open}</p>${toCopy(`client-${n}`, signsIn.text)}
<p>With an <a href="/account/keys">API key</a>, put this into ${hasKey.into}.</p>${toCopy(`client-${n}-key`, hasKey.text)}</details>`;
  });
  const sections = KINDS.map((kind) => {
    const own = PROMPTS.filter((each) => each.kind === kind);
    const each = own.map(
      (prompt) =>
        html`<details class="copied"><summary class="line">${prompt.title} <span class="muted">${prompt.about}</span></summary>${toCopy(prompt.name, fill(prompt, given))}</details>`,
    );
    return html`<h2>${HEADINGS[kind]}</h2>${each}`;
  });
  const fields = (Object.keys(FILLINGS) as Filling[]).map((name) =>
    field(name, LABELS[name], { value: given[name], isOptional: true }),
  );
  return {
    title: "Prompts",
    at: "/prompts",
    who: whoOf(account),
    body: html`<h1>Prompts</h1><p>Ready-made prompts for an agent connected to roomd. Copy one, use them as MCP prompts in your client, or install them with <code>roomd skills install</code>.</p>
<h2>Connect a client</h2>${clients}<h2>Choose a prompt</h2>
<form method="get" action="/prompts" class="row">${fields}<button class="button">Fill in</button></form>
${sections}`,
  };
}
