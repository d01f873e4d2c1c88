/** Pages of the account: the profile, API keys, sessions. */

import type { Problem } from "../../../../shared/api/errors.ts";
import type { KeyRecord } from "../../../../shared/api/orgs.ts";
import type { AccountRecord, SessionRecord } from "../../../../shared/api/people/account.ts";
import type { UsageReport } from "../../../../shared/api/usage.ts";
import { html, type Markup } from "../../../core/markup.ts";
import { choice, field, hidden, moment, type Page, type SignedInUser, sure, tabs, trouble } from "../layout.ts";
import { ROUTES } from "../routes.ts";
import type { SignInOption } from "../sign-in-options.ts";
import { passkeyButton } from "./passkey-button.ts";

/** Form fields that prove the user's identity. */
const PROOFS: readonly string[] = ["proof", "proof_passkey"];

export interface FormReport {
  problem?: Problem | null;
  /** The result of the form, in a sentence. */
  done?: string | null;
  /** The fields of a rejected form, which the page shows again. */
  typed?: ReadonlyMap<string, string>;
}

const heading = (at: string, { problem = null, done = null }: FormReport): Markup =>
  html`<h1>Account</h1>${tabs(at)}${trouble(problem)}${done === null ? "" : html`<p class="done" role="status">${done}</p>`}`;

const whoOf = ({ name, org_id, organizations, role }: AccountRecord): SignedInUser => ({
  name,
  isKeeper: role === "owner" || role === "admin",
  org: organizations.find((each) => each.org_id === org_id)?.name ?? "",
});

interface ShownProfile {
  /** Whether the service sends e-mails. */
  hasMail: boolean;
  /** Null: this user may not see it. */
  usage: UsageReport | null;
}

/** Summary of the organization's resources and usage. */
function inShort({ plan, sandboxes, totals, credits }: UsageReport): Markup {
  const left =
    credits.remaining === null ? "no limit" : credits.remaining.toLocaleString("en", { maximumFractionDigits: 3 });
  const hours = (totals.sandbox_seconds / 3600).toFixed(1);
  return html`<h2>Usage</h2><dl class="facts"><dt>Plan</dt><dd>${plan}</dd><dt>Credits left</dt><dd>${left}</dd><dt>Active sandboxes</dt><dd>${sandboxes.active}</dd><dt>This month</dt><dd>${hours} sandbox hours</dd></dl><p><a href="/billing">Credits and usage</a></p>`;
}

export function profilePage(account: AccountRecord, { hasMail, usage }: ShownProfile, report: FormReport = {}): Page {
  const { email, email_verified, name, role, organizations, org_id } = account;
  const others = organizations.filter((each) => each.org_id !== org_id);
  const change = others.length
    ? html`<h2>Switch organization</h2><form method="post" action="/account" class="row narrow">${hidden([["do", "org"]])}
${choice(
  "org_id",
  "Organization",
  others.map((each) => [each.org_id, `${each.name} (${each.role})`]),
)}<button class="button">Switch</button></form>`
    : "";
  const address = hasMail
    ? html`<h2>E-mail</h2><form method="post" action="/account" class="narrow">${hidden([["do", "email"]])}${field("email", email_verified ? "New address" : "Your address", { type: "email", value: email_verified ? "" : email, autocomplete: "email", hint: email_verified ? "We will e-mail a confirmation link to it." : "Not verified yet: we will e-mail a link to it. A verified address can be used to reset your access." })}<button class="button">Send the link</button></form>`
    : "";
  return {
    title: "Account",
    who: whoOf(account),
    body: html`${heading("/account", report)}<dl class="facts"><dt>E-mail</dt><dd>${email}${email_verified ? html` <span class="muted">verified</span>` : ""}</dd><dt>Organization</dt><dd><bdi>${whoOf(account).org}</bdi> <span class="muted">as ${role}</span></dd><dt>Id</dt><dd class="mono">${account.user_id}</dd></dl>
<form method="post" action="/account" class="narrow">${hidden([["do", "name"]])}${field("name", "Name", { value: name, autocomplete: "name" })}<button class="button main">Save</button></form>
${usage ? inShort(usage) : ""}${address}${change}<h2>Your data</h2><p><a href="/account/data">View your data, or delete this account</a></p>`,
  };
}

/** A newly created key, which is shown only once. */
export interface NewKey {
  url: string;
  key: string;
  name: string;
}

export const keyShown = ({ url, key, name }: NewKey): Markup =>
  html`<div class="prompt"><p><b>Your new key</b> <bdi>${name}</bdi> <span class="muted">Copy it now. It will not be shown again.</span></p><pre id="exports">export ROOMD_URL=${url}
export ROOMD_API_KEY=${key}</pre><button type="button" class="button main" data-copy="exports" hidden>Copy both lines</button></div>`;

export const ENDS: readonly (readonly [string, string])[] = [
  ["", "Never"],
  ["604800", "In 7 days"],
  ["2592000", "In 30 days"],
  ["7776000", "In 90 days"],
  ["31536000", "In a year"],
];
export const MAY: readonly (readonly [string, string])[] = [
  ["all", "Full access (same as my role)"],
  ["read", "Read only"],
];

interface ShownKeys {
  keys: readonly KeyRecord[];
  /** The members' names by their IDs. */
  names: ReadonlyMap<string, string>;
  made: NewKey | null;
  /** ID of the next form, so that it is accepted once. */
  once: string;
}

export function keysPage(
  account: AccountRecord,
  { keys, names, made, once }: ShownKeys,
  report: FormReport = {},
): Page {
  const { typed } = report;
  const shown = made ? keyShown(made) : "";
  const rows = keys.map(
    (key) =>
      html`<tr><td data-label="Name"><bdi>${key.name}</bdi></td><td data-label="Key" class="mono">${key.key_prefix}…</td><td data-label="Access">${mayOf(key)}</td><td data-label="Created by"><bdi>${names.get(key.created_by.id) ?? (key.created_by.type === "operator" ? "the operator" : key.created_by.id)}</bdi></td><td data-label="Last used">${moment(key.last_used_at)}</td><td data-label="Expires">${moment(key.expires_at, "–")}</td><td class="num">${act(key, "rotate", "Rotate", once)}${sure("Revoke", key.name, act(key, "revoke", "Revoke permanently", once))}</td></tr>`,
  );
  const none = html`<p class="muted">No API keys yet. Programs and MCP clients use a key to connect.</p>`;
  const table = html`<div class="scroll"><table><thead><tr><th>Name</th><th>Key</th><th>Access</th><th>Created by</th><th>Last used</th><th>Expires</th><td></td></tr></thead><tbody>${rows}</tbody></table></div>`;
  const make =
    account.role === "viewer"
      ? html`<p class="muted">Viewers cannot create API keys. An owner or admin can change your role.</p>`
      : html`<h2>Create a key</h2><form method="post" action="/account/keys" class="row">${hidden([
          ["do", "make"],
          ["once", once],
        ])}
${field("name", "Name", { value: typed?.get("name") })}${choice("may", "Access", MAY, typed?.get("may"))}${choice("ends", "Expires", ENDS, typed?.get("ends"))}<button class="button main">Create key</button></form>`;
  return {
    title: "API keys",
    who: whoOf(account),
    body: html`${heading("/account/keys", report)}${shown}<h2>Keys</h2>${rows.length ? table : none}${make}`,
  };
}

function mayOf({ scopes, room_ids }: KeyRecord): string {
  const writes = scopes.filter((scope) => !scope.endsWith(":read"));
  const accessLabel = scopes.includes("org:admin")
    ? "full access"
    : writes.length === 0
      ? "read only"
      : scopes.length > 8
        ? "full member access"
        : scopes.join(", ");
  return room_ids === null ? accessLabel : `${accessLabel} · ${room_ids.join(", ")}`;
}

const act = ({ key_id, name }: KeyRecord, formAction: string, label: string, once: string) =>
  html`<form method="post" action="/account/keys">${hidden([
    ["do", formAction],
    ["key_id", key_id],
    ["once", `${once}-${key_id}`],
  ])}<button class="link" aria-label="${label} ${name}">${label}</button></form>`;

export function sessionsPage(
  account: AccountRecord,
  sessions: readonly SessionRecord[],
  report: FormReport = {},
): Page {
  const rows = sessions.map((session) => {
    const end = session.is_this
      ? html`<span class="muted">this session</span>`
      : sure(
          "Sign out",
          `the session of ${browserOf(session.user_agent)}`,
          html`<form method="post" action="/account/sessions">${hidden([["session_id", session.session_id]])}<button class="link">Sign out this session</button></form>`,
        );
    return html`<tr><td data-label="Device">${browserOf(session.user_agent)}</td><td data-label="IP address" class="mono">${session.ip ?? "–"}</td><td data-label="Signed in">${moment(session.created_at)}</td><td data-label="Last seen">${moment(session.seen_at)}</td><td class="num">${end}</td></tr>`;
  });
  const others =
    sessions.length > 1
      ? html`<p></p><form method="post" action="/account/sessions">${hidden([["session_id", "others"]])}<button class="button">Sign out all other sessions</button></form>`
      : "";
  return {
    title: "Sessions",
    who: whoOf(account),
    body: html`${heading("/account/sessions", report)}<div class="scroll"><table><thead><tr><th>Device</th><th>IP address</th><th>Signed in</th><th>Last seen</th><td></td></tr></thead><tbody>${rows}</tbody></table></div>${others}`,
  };
}

/** As people call it. */
function browserOf(agent: string | null): string {
  const name = /Edg|OPR|Firefox|Chrom(?:e|ium)|Safari|curl/.exec(agent ?? "")?.[0] ?? "Other client";
  const system = /Android|iPhone|iPad|Windows|Mac OS X|Linux/.exec(agent ?? "")?.[0];
  const browser = { Edg: "Edge", OPR: "Opera", Chromium: "Chrome" }[name] ?? name;
  return system ? `${browser} on ${system}` : browser;
}

/** Important actions require the password or passkey again; the original form is sent along. */
export function proofPage(
  account: AccountRecord,
  path: string,
  form: ReadonlyMap<string, string>,
  problem: Problem | null,
  offer: SignInOption | null,
): Page {
  const along = [...form].filter(([name]) => !PROOFS.includes(name));
  const password = account.has_password
    ? html`<form method="post" action="${path}" class="narrow">${hidden(along)}${field("proof", "Password", { type: "password", autocomplete: "current-password", isFirst: true })}<button class="button main">Continue</button></form>`
    : "";
  const button = passkeyButton(offer, {
    does: "use",
    label: "Use a passkey",
    as: "proof_passkey",
    isMain: !account.has_password,
  });
  return {
    title: "Confirm it is you",
    status: 403,
    leadsOut: ROUTES[path]?.leadsOut ?? form.get("do") === "link",
    who: whoOf(account),
    body: html`<h1>Confirm it is you</h1><p class="muted">For security, confirm your identity. This is valid for 10 minutes.</p>${trouble(problem)}${password}${offer ? html`<form method="post" action="${path}" class="narrow">${hidden(along)}${button}</form>` : ""}`,
  };
}

export { whoOf };
