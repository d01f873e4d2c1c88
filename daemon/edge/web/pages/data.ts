/** Page of personal data: the stored data as JSON, and deletion of the account. */
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { html } from "../../../core/markup.ts";
import { field, hidden, type Page, tabs, trouble } from "../layout.ts";
import { type Told, whoOf } from "./account.ts";

/** `kept` null: it was not requested. */
export function dataPage(account: AccountRecord, kept: string | null, { problem = null }: Told = {}): Page {
  const shown =
    kept === null
      ? html`<form method="post" action="/account/data">${hidden([["do", "export"]])}<button class="button">Show all that is kept</button></form>`
      : html`<div class="prompt"><pre id="kept">${kept}</pre><button type="button" class="button main" data-copy="kept" hidden>Copy</button></div>`;
  return {
    title: "Your data",
    who: whoOf(account),
    body: html`<h1>Account</h1>${tabs("/account")}${trouble(problem)}<h2>Your data</h2><p class="muted">What you did is in the records of your organizations, where you go by your id. Passwords and keys are kept as hashes only, and not shown.</p>${shown}
<h2>Delete this account</h2><p>This cannot be undone. You leave every organization, your keys and sessions end, and all that is kept of you goes. Records stay for their own time, with your id alone.</p><form method="post" action="/account/data" class="narrow">${hidden([["do", "forget"]])}${field("email", "Your e-mail", { type: "email", hint: `Type ${account.email} to confirm.` })}<button class="button bad">Delete my account</button></form>`,
  };
}
