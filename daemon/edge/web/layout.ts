/** Frame of every web page, and the few components that pages consist of. */
import type { Problem } from "../../../shared/api/errors.ts";
import { spelled } from "../../../shared/api/spelling.ts";
import type { Boot } from "../../../shared/hub/boot.ts";
import { html, Markup } from "../../core/markup.ts";
import BASE from "../../web/base.css" with { type: "text" };
import TOKENS from "../../web/tokens.css" with { type: "text" };
import { HUB_PROGRAM, HUB_STYLE } from "./hub-files.ts";
import SCRIPT from "./page.browser.js" with { type: "text" };

export { SCRIPT };
export const STYLE = TOKENS + BASE;

/** The signed-in user, as the rail shows it. */
export interface SignedInUser {
  name: string;
  org: string;
  /** Whether the user is an owner or admin of the organization. */
  isKeeper: boolean;
}

export interface Page {
  title: string;
  /** The path of the page's entry in the navigation rail or in the account's tabs. */
  at?: string;
  who?: SignedInUser | null;
  body: Markup;
  status?: number;
  /** The response to its form redirects the browser elsewhere. */
  leadsOut?: boolean;
  /** It runs the hub: its boot data, and the nonce of styles added later. */
  hub?: { boot: Boot; nonce: string };
}

const TABS: readonly (readonly [path: string, name: string])[] = [
  ["/account", "Profile"],
  ["/account/ways", "Sign-in methods"],
  ["/account/keys", "API keys"],
  ["/account/applications", "Applications"],
  ["/account/sessions", "Sessions"],
  ["/org/members", "Members"],
  ["/billing", "Billing"],
];

export function tabs(at: string): Markup {
  const links = TABS.map(([path, name]) => html`<a href="${path}"${current(path, at)}>${name}</a>`);
  return html`<nav class="tabs" aria-label="Account">${links}</nav>`;
}

const HOSTS = "Hosts";
const RAIL: readonly (readonly [path: string, name: string])[] = [
  ["/", "Home"],
  ["/rooms", "Rooms"],
  ["/audit", "Audit"],
  ["/usage", "Usage"],
  ["/hosts", HOSTS],
  ["/prompts", "Prompts"],
  ["/docs", "API"],
];

const current = (path: string, at: string) => (path === at ? new Markup(' aria-current="page"') : "");

/**
 * `said` is the result of the previous form, as a sentence; `hasHosts`: whether the service has several hosts; `colours`: light or dark.
 */
export function render(
  { title, at = "/account", who = null, body, hub }: Page,
  notice: string | null = null,
  { hasHosts = false, colours = null }: { hasHosts?: boolean; colours?: string | null } = {},
): string {
  const entries = RAIL.filter(([, name]) => name !== HOSTS || (hasHosts && who?.isKeeper));
  const rail = who
    ? html`<nav class="rail" aria-label="roomd"><span class="brand">roomd</span>${entries.map(([path, name]) => html`<a href="${path}"${current(path, at)}>${name}</a>`)}<div class="foot"><a href="/account"${current("/account", at)}><bdi>${who.name}</bdi> · <bdi>${who.org}</bdi></a><form method="post" action="/signout"><button class="link">Sign out</button></form></div></nav>`
    : "";
  const style = hub ? html`<link rel="stylesheet" href="${HUB_STYLE}">` : html`<style>${new Markup(STYLE)}</style>`;
  const script = hub
    ? html`<script type="application/json" id="boot">${new Markup(inScript(hub.boot))}</script><script type="module" src="${HUB_PROGRAM}"></script>`
    : html`<script>${new Markup(SCRIPT)}</script>`;
  const page = html`<!doctype html>
<html lang="en"${colours === null ? "" : html` data-colours="${colours}"`}><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · roomd</title><link rel="icon" href="data:,">${style}</head>
<body class="${who ? "inside" : "outside"}"><a class="skip" href="#main">Skip to content</a>${rail}
<main id="main" tabindex="-1">${notice === null ? "" : html`<p class="done" role="status">${notice}</p>`}${body}</main><p class="said" role="status" aria-live="polite"></p>${script}</body></html>`;
  return page.text;
}

/** JSON in which no text can close the script element. */
const inScript = (value: object) => JSON.stringify(value).replaceAll("<", "\\u003c");

/** `name must have …` → `Name must have …`; a message without the field's name gets it as a prefix. */
function sentence(field: string, message: string): string {
  const text = message.startsWith(`${field} `) ? message : `${field} ${message}`;
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`.replaceAll("_", " ");
}

/** The error, with the next step for the user. */
export function trouble(problem: Problem | null): Markup | string {
  if (!problem) return "";
  // A script moves each message to its field.
  const each = problem.errors.map(
    ({ field, message }) => html`<li data-field="${field}">${sentence(field, message)}</li>`,
  );
  const isOfFields = problem.errors.length > 0 && problem.code === "validation_failed";
  const text = isOfFields ? "Correct the marked fields and send the form again" : problem.detail;
  const words = problem.hint && spelled(problem.hint, { kind: "http" });
  const hint = words ? html` <span class="muted">${words}</span>` : "";
  return html`<div class="trouble" role="alert"><p>${text}${/[.!?]$/.test(text) ? "" : "."}${hint}</p>${each.length ? html`<ul>${each}</ul>` : ""}</div>`;
}

export interface FieldOptions {
  type?: "text" | "email" | "password";
  value?: string | undefined;
  autocomplete?: string;
  hint?: string;
  isFirst?: boolean;
  isOptional?: boolean;
}

export function field(name: string, label: string, options: FieldOptions = {}): Markup {
  const { type = "text", value = "", autocomplete = "off", hint = "", isFirst = false, isOptional = false } = options;
  const described = hint ? html` aria-describedby="${name}-hint"` : "";
  const first = isFirst ? new Markup(" autofocus") : "";
  const needed = isOptional ? "" : new Markup(" required");
  return html`<p class="field"><label for="${name}">${label}</label><input id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}"${needed}${described}${first}>${hint ? html`<small id="${name}-hint">${hint}</small>` : ""}</p>`;
}

export function choice(
  name: string,
  label: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen = "",
): Markup {
  const each = options.map(
    ([value, text]) =>
      html`<option value="${value}"${value === chosen ? new Markup(" selected") : ""}>${text}</option>`,
  );
  return html`<p class="field"><label for="${name}">${label}</label><select id="${name}" name="${name}">${each}</select></p>`;
}

export function hidden(fields: Iterable<readonly [string, string]>): Markup[] {
  return [...fields].map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);
}

/** A button with a confirmation, which works without script too: it opens a form, and the form's button executes it. */
export function sure(label: string, of: string, form: Markup): Markup {
  return html`<details class="sure"><summary aria-label="${label} ${of}">${label}</summary>${form}</details>`;
}

/** A time in readable form, with the exact time as its title. */
export function moment(at: string | null, never = "never"): Markup {
  if (at === null) return html`<span class="muted">${never}</span>`;
  return html`<time datetime="${at}" title="${at}">${at.slice(0, 16).replace("T", " ")} UTC</time>`;
}
