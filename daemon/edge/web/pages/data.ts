/** Page of personal data: the stored data as JSON, and deletion of the account. */
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { html } from "../../../core/markup.ts";
import { field, hidden, type Page, tabs, trouble } from "../layout.ts";
import { type FormReport, whoOf } from "./account.ts";

/** `kept` null: it was not requested. */
export function dataPage(account: AccountRecord, kept: string | null, { problem = null }: FormReport = {}): Page {
  const shown =
    kept === null
      ? html`<form method="post" action="/account/data">${hidden([["do", "export"]])}<button class="button">Show my data</button></form>`
      : html`<div class="prompt"><pre id="kept">${kept}</pre><button type="button" class="button main" data-copy="kept" hidden>Copy</button></div>`;
  return {
    title: "Your data",
    who: whoOf(account),
    body: html`<h1>Account</h1>${tabs("/account")}${trouble(problem)}<h2>Your data</h2><p class="muted">Your actions are recorded in the audits of your organizations under your user ID. Passwords and keys are stored only as hashes, and are not shown.</p>${shown}
<h2>Delete this account</h2><p>This cannot be undone. You leave every organization, your keys are revoked, your sessions are signed out, and all your data is deleted. Audit records remain for their retention period, with your user ID only.</p><form method="post" action="/account/data" class="narrow">${hidden([["do", "forget"]])}${field("email", "Your e-mail", { type: "email", hint: `Type ${account.email} to confirm.` })}<button class="button bad">Delete my account</button></form>`,
  };
}
