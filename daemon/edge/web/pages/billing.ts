/** Pages of an organization's plan, credits with their ledger, usage summary, and the result of a payment. */

import type { OutputOf } from "../../../../shared/api/contract.ts";
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import type { BillingRecord } from "../../../../shared/api/people/billing.ts";
import type { creditList, LedgerEntry } from "../../../../shared/api/people/credits.ts";
import type { UsageReport } from "../../../../shared/api/usage.ts";
import { html, type Markup } from "../../../core/markup.ts";
import { hidden, moment, type Page, tabs, trouble } from "../layout.ts";
import { type FormReport, keyShown, type NewKey, whoOf } from "./account.ts";

const KINDS: Record<LedgerEntry["kind"], string> = { grant: "granted", withdrawal: "withdrawn", spend: "used" };
const HOUR = 3600;
const MIB = 1024 ** 2;

export interface Billing {
  usage: UsageReport;
  credits: OutputOf<typeof creditList>;
  bought: BillingRecord;
}

/** The source of the plan, and an owner's options. */
function planOf({ role }: AccountRecord, bought: BillingRecord): Markup | string {
  const { provider, status, can_buy, cancels_at_end, plan_until, period_end } = bought;
  if (provider === "none") return "";
  const statusText = {
    none: "",
    pending: "The payment is not complete.",
    active: cancels_at_end ? "The subscription was cancelled." : "",
    past_due: "The last payment failed. Update your payment method at the payment service to keep the plan.",
    ended:
      "The subscription has ended. Running sandboxes continue; nothing can be added above the limits of the free plan.",
  }[status];
  const until = plan_until === null ? "" : html` The plan is valid until ${moment(plan_until)}.`;
  const paid =
    status === "active" && !cancels_at_end ? html`<p class="muted">Paid until ${moment(period_end)}.</p>` : "";
  const say =
    statusText || until
      ? html`<p class="${status === "past_due" ? "trouble" : "muted"}">${statusText}${until}</p>`
      : "";
  if (role !== "owner") return html`${say}${paid}<p class="muted">An owner can change the plan.</p>`;
  const buy = can_buy ? sendTo("buy", "Upgrade to Starter", true) : "";
  const portal = status === "none" ? "" : sendTo("portal", "Cards and invoices", false);
  return html`${say}${paid}${buy}${portal}`;
}

const sendTo = (formAction: string, label: string, isMain: boolean): Markup =>
  html`<form method="post" action="/billing">${hidden([["do", formAction]])}<button class="button${isMain ? " main" : ""}">${label}</button></form>`;

export interface Success {
  checkout_id: string;
  is_paid: boolean;
  plan: string;
  /** Prefix of the key that was issued for this payment. */
  key_prefix: string | null;
  /** The key, if it was just created. */
  made: NewKey | null;
}

/** The page after returning from the payment. */
export function successPage(account: AccountRecord, seen: Success, { problem = null }: FormReport = {}): Page {
  const { checkout_id, is_paid, plan, key_prefix, made } = seen;
  const take = html`<form method="post" action="/billing/success">${hidden([["session_id", checkout_id]])}<button class="button main">Show my API key</button></form><p class="muted">It is shown once.</p>`;
  const taken = html`<p>The key of this payment is <code>${key_prefix ?? ""}…</code>. It was shown once. <a href="/account/keys">Other keys</a></p>`;
  const key = made ? keyShown(made) : key_prefix === null ? (account.role === "owner" ? take : "") : taken;
  const body = is_paid
    ? html`<h1>Thank you</h1>${trouble(problem)}<p>The plan of <bdi>${whoOf(account).org}</bdi> is <b>${plan}</b>.</p>${key}`
    : html`<h1>Confirming your payment</h1>${trouble(problem)}<p role="status">The payment service has not confirmed the payment yet. This page refreshes automatically.</p>`;
  return {
    title: is_paid ? "Thank you" : "Confirming your payment",
    who: whoOf(account),
    body: html`${body}<p><a href="/billing">Billing</a></p>`,
  };
}

export function billingPage(
  account: AccountRecord,
  { usage, credits, bought }: Billing,
  { problem = null }: FormReport = {},
): Page {
  const { granted, used, remaining, items, next_cursor } = credits;
  // The rows below contain the operator's grants only.
  const byRows = items.reduce((sum, { kind, amount }) => (kind === "spend" ? sum : sum + amount), 0);
  const planned = granted === null || next_cursor !== null ? 0 : granted - byRows;
  const ofPlan = planned > 0 ? html` <span class="muted">including ${shown(planned)} from the plan</span>` : "";
  const balance =
    granted === null
      ? html`<p>This organization has no credit limit.</p>`
      : html`<dl class="facts"><dt>Remaining</dt><dd><b>${shown(remaining ?? 0)}</b></dd><dt>Granted</dt><dd>${shown(granted)}${ofPlan}</dd><dt>Used</dt><dd>${shown(used)}</dd></dl>`;
  const rows = items.map(
    ({ at, kind, amount, reason }) =>
      html`<tr><td data-label="When">${moment(at)}</td><td data-label="Type">${KINDS[kind]}</td><td data-label="Reason"><bdi>${reason}</bdi></td><td data-label="Credits" class="num">${shown(amount)}</td></tr>`,
  );
  const ledger = rows.length
    ? html`<div class="scroll"><table><thead><tr><th>When</th><th>Type</th><th>Reason</th><th class="num">Credits</th></tr></thead><tbody>${rows}</tbody></table></div>`
    : html`<p class="muted">No credits granted or used yet.</p>`;
  const more =
    next_cursor === null
      ? ""
      : html`<p class="muted">Older entries are in the API: <code>/v1/orgs/self/credits</code>.</p>`;
  const { totals, rooms, sandboxes } = usage;
  const grantedBy =
    bought.provider === "none" ? html`<p class="muted">The operator of this service grants credits.</p>` : "";
  const warnings = usage.warnings.map((warning) => html`<p class="trouble">${warning}</p>`);
  return {
    title: "Billing",
    leadsOut: bought.provider !== "none",
    who: whoOf(account),
    body: html`<h1>Account</h1>${tabs("/billing")}${trouble(problem)}${warnings}
<h2>Plan</h2><dl class="facts"><dt>Plan</dt><dd>${usage.plan}</dd><dt>Rooms</dt><dd>${shown(rooms.active)} of ${shown(rooms.hard_cap)}</dd><dt>Sandboxes</dt><dd>${shown(sandboxes.active)} of ${shown(sandboxes.hard_cap)}</dd></dl>${planOf(account, bought)}
<h2>Credits</h2>${balance}${grantedBy}
<h2>This month</h2><dl class="facts"><dt>Sandboxes</dt><dd>${hours(totals.sandbox_seconds)}</dd><dt>Processors</dt><dd>${hours(totals.vcpu_seconds)}</dd><dt>Commands</dt><dd>${shown(totals.exec_count)}</dd><dt>Messages</dt><dd>${shown(totals.messages)}</dd><dt>Outbound traffic</dt><dd>${(totals.egress_bytes / MIB).toFixed(1)} MiB</dd></dl>
<h2>Credit history</h2>${ledger}${more}`,
  };
}

const shown = (credits: number): string => credits.toLocaleString("en", { maximumFractionDigits: 3 });
const hours = (seconds: number): string => `${(seconds / HOUR).toFixed(1)} h`;
