/** Page of a user's sign-in methods. */
import { type AccountRecord, PASSWORD_LENGTH } from "../../../../shared/api/people/account.ts";
import type { IdentityRecord } from "../../../../shared/api/people/identities.ts";
import type { PasskeyRecord } from "../../../../shared/api/people/passkeys.ts";
import { html } from "../../../core/markup.ts";
import { field, hidden, moment, type Page, sure, tabs, trouble } from "../layout.ts";
import type { SignInOption } from "../sign-in-options.ts";
import { type FormReport, whoOf } from "./account.ts";
import { passkeyButton } from "./passkey-button.ts";

const PATH = "/account/ways";

export interface ShownWays {
  passkeys: readonly PasskeyRecord[];
  /** To create another; null: not requested. */
  offer: SignInOption | null;
  identities: readonly IdentityRecord[];
  /** Name of the identity provider; null: none is configured. */
  elsewhere: string | null;
}

export function waysPage(
  account: AccountRecord,
  { passkeys, offer, identities, elsewhere }: ShownWays,
  report: FormReport = {},
): Page {
  const { problem = null } = report;
  const rows = passkeys.map(
    (each) =>
      html`<tr><td data-label="Name"><bdi>${each.name}</bdi>${each.is_usable ? "" : html` <span class="muted">not usable here: created for ${each.rp_id}</span>`}</td><td data-label="Storage">${each.is_synced ? "synced" : "one device only"}</td><td data-label="Created">${moment(each.created_at)}</td><td data-label="Last used">${moment(each.last_used_at)}</td><td class="num">${sure(
        "Remove",
        each.name,
        html`<form method="post" action="${PATH}">${hidden([
          ["do", "remove"],
          ["passkey_id", each.passkey_id],
        ])}<button class="link">Remove permanently</button></form>`,
      )}</td></tr>`,
  );
  const table = html`<div class="scroll"><table><thead><tr><th>Name</th><th>Storage</th><th>Created</th><th>Last used</th><td></td></tr></thead><tbody>${rows}</tbody></table></div>`;
  const add = offer
    ? html`<form method="post" action="${PATH}" class="narrow">${hidden([["do", "add"]])}${field("name", "Name of the new passkey", { value: "", hint: "To recognize it later, for example “laptop”.", isFirst: true })}${passkeyButton(offer, { does: "make", label: "Create passkey", isMain: true })}<noscript><p class="muted">Passkeys need JavaScript, which is disabled in your browser.</p></noscript></form>`
    : html`<form method="post" action="${PATH}">${hidden([["do", "begin"]])}<button class="button main">Add a passkey</button></form>`;
  const linked = identities.map(
    (each) =>
      html`<tr><td data-label="Account"><bdi>${each.label}</bdi>${each.is_usable ? "" : html` <span class="muted">provider no longer configured</span>`}</td><td data-label="Linked">${moment(each.created_at)}</td><td data-label="Last used">${moment(each.last_used_at)}</td><td class="num">${sure(
        "Unlink",
        each.label,
        html`<form method="post" action="${PATH}">${hidden([
          ["do", "unlink"],
          ["identity_id", each.identity_id],
        ])}<button class="link">Unlink account</button></form>`,
      )}</td></tr>`,
  );
  const accounts =
    linked.length > 0
      ? html`<div class="scroll"><table><thead><tr><th>Account</th><th>Linked</th><th>Last used</th><td></td></tr></thead><tbody>${linked}</tbody></table></div>`
      : "";
  const link =
    elsewhere === null
      ? ""
      : html`<form method="post" action="${PATH}">${hidden([["do", "link"]])}<button class="button">Link an account from ${elsewhere}</button></form>`;
  const others = accounts || link ? html`<h2>Linked accounts</h2>${accounts}${link}` : "";
  const password = account.has_password ? "New password" : "Password";
  return {
    title: "Sign-in methods",
    leadsOut: elsewhere !== null,
    who: whoOf(account),
    body: html`<h1>Account</h1>${tabs(PATH)}${trouble(problem)}<h2>Passkeys</h2><p class="muted">Sign in with your fingerprint, face or device PIN. A passkey cannot be guessed or phished.</p>${rows.length > 0 ? table : ""}${add}
<h2>Password</h2>${account.has_password ? "" : html`<p class="muted">No password set.</p>`}<form method="post" action="${PATH}" class="narrow">${hidden([["do", "password"]])}${field("password", password, { type: "password", autocomplete: "new-password", hint: `${PASSWORD_LENGTH.minLength} characters or more. All your other sessions will be signed out.` })}<button class="button">Set password</button></form>${others}`,
  };
}
