/** Pages of applications: authorizing one, by its request or by its code, and the list of authorized ones. */

import { READ_SCOPES, type Scope } from "../../../../shared/api/contract.ts";
import type { Problem } from "../../../../shared/api/errors.ts";
import type { GrantRecord } from "../../../../shared/api/grants.ts";
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { html, type Markup } from "../../../core/markup.ts";
import { choice, field, hidden, moment, type Page, sure, tabs, trouble } from "../layout.ts";
import { ROUTES } from "../routes.ts";
import { type FormReport, whoOf } from "./account.ts";

/** The user's choices to narrow a request. */
export const GIVES: readonly (readonly [string, string])[] = [
  ["all", "Everything requested"],
  ["read", "Read only"],
];
export const LASTS: readonly (readonly [string, string])[] = [
  ["", "Until I revoke it"],
  ["3600", "For an hour"],
  ["86400", "For a day"],
  ["2592000", "For 30 days"],
];

/** Descriptions of scopes. Scopes that act on the outside or run programs are marked. */
const SAID: Record<Scope, string> = {
  "rooms:read": "see rooms",
  "rooms:write": "create and destroy rooms",
  "sandboxes:read": "see sandboxes",
  "sandboxes:write": "create and destroy sandboxes",
  exec: "run commands in sandboxes",
  "ports:write": "expose ports to the network",
  "drive:read": "read drives",
  "drive:write": "write to drives",
  "fabric:read": "read messages between agents",
  "fabric:write": "send messages between agents",
  terminal: "open terminals",
  "templates:write": "build and remove templates",
  "audit:read": "read the audit",
  "usage:read": "read usage",
  "keys:write": "create and revoke API keys",
  "org:admin": "administer the organization",
};

/** Scopes that the user should notice first. */
const STRONG: readonly Scope[] = ["exec", "ports:write", "terminal", "keys:write", "org:admin"];

export interface Consent {
  /** The application's own name: any application may use any name. */
  name: string;
  scopes: readonly Scope[];
  /** The redirect's destination, or the origin of the request. */
  place: Markup;
  /** The form's target, and its hidden fields. */
  action: string;
  along: readonly (readonly [string, string])[];
  problem?: Problem | null;
}

export function consentPage(account: AccountRecord, consent: Consent): Page {
  const { name, scopes, place, action, along, problem = null } = consent;
  const writes = scopes.filter((scope) => !(READ_SCOPES as readonly string[]).includes(scope));
  const scopeItems = [...scopes]
    .sort((one, other) => Number(STRONG.includes(other)) - Number(STRONG.includes(one)))
    .map((scope) => html`<li>${STRONG.includes(scope) ? html`<b>${SAID[scope]}</b>` : SAID[scope]}</li>`);
  const org = whoOf(account).org;
  return {
    title: "Authorize an application",
    who: whoOf(account),
    status: problem?.status ?? 200,
    leadsOut: ROUTES[action]?.leadsOut ?? false,
    body: html`<h1>Authorize this application?</h1>${trouble(problem)}<p>An application that calls itself <b><bdi>${name}</bdi></b> requests access to <b><bdi>${org}</bdi></b> on your behalf.${account.organizations.length > 1 ? html` <span class="muted">To authorize it for another organization, switch to that organization in your profile first.</span>` : ""}</p>${place}
<h2>Requested permissions</h2><ul class="asks">${scopeItems}</ul>
<form method="post" action="${action}" class="narrow">${hidden(along)}
${writes.length > 0 ? choice("gives", "Access", GIVES) : hidden([["gives", "all"]])}
${field("rooms", "Only in these rooms", { hint: "Room names separated by spaces. Leave empty for all rooms.", isOptional: true })}
${choice("lasts", "Duration", LASTS)}
<p class="row"><button class="button main" name="do" value="allow">Authorize</button> <button class="button" name="do" value="deny" formnovalidate>Deny</button></p></form>`,
  };
}

/** The redirect's destination, as users judge it. */
export const backAt = (place: string, isLoopback: boolean): Markup =>
  html`<p class="muted">Redirects to</p><p class="place">${place}</p>${isLoopback ? html`<p class="muted">This is a program on your computer. Continue only if you just started it yourself.</p>` : html`<p class="muted">Continue only if you recognize this address.</p>`}`;

/** `code` is compared with the one on the device: a link to this page may come from anyone. */
export const asksFrom = (ip: string | null, since: string, code: string): Markup =>
  html`<p class="muted">Code</p><p class="place">${code}</p><p class="muted">Requested from</p><p class="place">${ip ?? "unknown"}</p><p class="muted">at ${moment(since)}. Continue only if you just started it yourself and your terminal shows the code ${code}.</p>`;

export function codePage(account: AccountRecord, code: string, problem: Problem | null = null): Page {
  return {
    title: "Authorize a device",
    who: whoOf(account),
    status: problem?.status ?? 200,
    body: html`<h1>Authorize a device</h1>${trouble(problem)}<p class="muted">Enter the code that your device or terminal shows. Do not enter a code that another person sent you.</p><form method="post" action="/device" class="narrow">${hidden([["step", "look"]])}
${field("user_code", "Code", { value: code, hint: "Eight letters.", isFirst: true })}<button class="button main">Continue</button></form>`,
  };
}

export function decidedPage(account: AccountRecord, name: string, allowed: boolean): Page {
  return {
    title: allowed ? "Access granted" : "Access denied",
    who: whoOf(account),
    body: html`<h1>${allowed ? "Access granted" : "Access denied"}</h1><p><bdi>${name}</bdi> ${allowed ? "continues automatically. You can close this page." : "was informed that you denied access."}</p><p><a href="/account/applications">Applications</a></p>`,
  };
}

/** `url` is the URL for MCP clients. */
export function applicationsPage(
  account: AccountRecord,
  grants: readonly GrantRecord[],
  url: string,
  report: FormReport = {},
): Page {
  const { problem = null, done = null } = report;
  const rows = grants.map(
    (grant) =>
      html`<tr><td data-label="Application"><bdi>${grant.client_name}</bdi></td><td data-label="Redirects to" class="mono">${grant.redirect_host ?? "device code"}</td><td data-label="Organization"><bdi>${orgOf(account, grant)}</bdi></td><td data-label="Access">${mayOf(grant)}</td><td data-label="Authorized">${moment(grant.created_at)}</td><td data-label="Last used">${moment(grant.last_used_at)}</td><td data-label="Expires">${moment(grant.expires_at, "–")}</td><td class="num">${sure("Revoke", grant.client_name, html`<form method="post" action="/account/applications">${hidden([["grant_id", grant.grant_id]])}<button class="link">Revoke access</button></form>`)}</td></tr>`,
  );
  const table = html`<div class="scroll"><table><thead><tr><th>Application</th><th>Redirects to</th><th>Organization</th><th>Access</th><th>Authorized</th><th>Last used</th><th>Expires</th><td></td></tr></thead><tbody>${rows}</tbody></table></div>`;
  const none = html`<p class="muted">No authorized applications. A client that connects to the URL below asks for your authorization.</p>`;
  return {
    title: "Applications",
    who: whoOf(account),
    body: html`<h1>Account</h1>${tabs("/account/applications")}${trouble(problem)}${done === null ? "" : html`<p class="done" role="status">${done}</p>`}<h2>Authorized applications</h2>${rows.length ? table : none}<h2>Connect an MCP client</h2><div class="prompt"><p class="muted">Give the client this URL. It opens a page on which you authorize it.</p><pre id="mcp">${url}</pre><button type="button" class="button" data-copy="mcp" hidden>Copy</button></div>`,
  };
}

const orgOf = ({ organizations }: AccountRecord, { org_id }: GrantRecord) =>
  organizations.find((each) => each.org_id === org_id)?.name ?? org_id;

function mayOf({ scopes, room_ids }: GrantRecord): string {
  const isReading = scopes.every((scope) => (READ_SCOPES as readonly string[]).includes(scope));
  const accessLabel = isReading ? "read only" : scopes.length > 6 ? "work in rooms" : scopes.join(", ");
  return room_ids === null ? accessLabel : `${accessLabel} · ${room_ids.join(", ")}`;
}
