/** Owns the page of what an organization has and uses: plan, credits with their ledger, and usage in short. */
import type { AccountRecord } from "../../../../shared/api/account.ts";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import type { creditList, LedgerEntry } from "../../../../shared/api/credits.ts";
import type { UsageReport } from "../../../../shared/api/usage.ts";
import { html } from "../../../core/markup.ts";
import { moment, type Page, tabs } from "../layout.ts";
import { whoOf } from "./account.ts";

const KINDS: Record<LedgerEntry["kind"], string> = { grant: "granted", withdrawal: "taken back", spend: "used" };
const HOUR = 3600;

export interface Billing {
  usage: UsageReport;
  credits: OutputOf<typeof creditList>;
}

export function billingPage(account: AccountRecord, { usage, credits }: Billing): Page {
  const { granted, used, remaining, items, next_cursor } = credits;
  const balance =
    granted === null
      ? html`<p>Nothing is counted against credits: there is no limit.</p>`
      : html`<dl class="facts"><dt>Left</dt><dd><b>${shown(remaining ?? 0)}</b></dd><dt>Granted</dt><dd>${shown(granted)}</dd><dt>Used</dt><dd>${shown(used)}</dd></dl>`;
  const rows = items.map(
    ({ at, kind, amount, reason }) =>
      html`<tr><td data-label="When">${moment(at)}</td><td data-label="What">${KINDS[kind]}</td><td data-label="Why"><bdi>${reason}</bdi></td><td data-label="Credits" class="num">${shown(amount)}</td></tr>`,
  );
  const ledger = rows.length
    ? html`<div class="scroll"><table><thead><tr><th>When</th><th>What</th><th>Why</th><th class="num">Credits</th></tr></thead><tbody>${rows}</tbody></table></div>`
    : html`<p class="muted">No credits were granted or used yet.</p>`;
  const more =
    next_cursor === null
      ? ""
      : html`<p class="muted">Older entries are in the API: <code>/v1/orgs/self/credits</code>.</p>`;
  const { totals, rooms, sandboxes } = usage;
  const warnings = usage.warnings.map((warning) => html`<p class="trouble">${warning}</p>`);
  return {
    title: "Billing",
    who: whoOf(account),
    body: html`<h1>Account</h1>${tabs("/billing")}${warnings}
<h2>Plan</h2><dl class="facts"><dt>Plan</dt><dd>${usage.plan}</dd><dt>Rooms</dt><dd>${rooms.active} of ${rooms.hard_cap}</dd><dt>Sandboxes</dt><dd>${sandboxes.active} of ${sandboxes.hard_cap}</dd></dl>
<h2>Credits</h2>${balance}<p class="muted">Credits come from whoever runs this service: <code>roomd org credits ${usage.org_id} --grant 500</code> on the host.</p>
<h2>This month</h2><dl class="facts"><dt>Sandboxes</dt><dd>${hours(totals.sandbox_seconds)}</dd><dt>Processors</dt><dd>${hours(totals.vcpu_seconds)}</dd><dt>Commands</dt><dd>${totals.exec_count}</dd><dt>Messages</dt><dd>${totals.messages}</dd><dt>Sent out</dt><dd>${(totals.egress_bytes / 1e6).toFixed(1)} MB</dd></dl>
<h2>Granted and used</h2>${ledger}${more}`,
  };
}

const shown = (credits: number): string => credits.toLocaleString("en", { maximumFractionDigits: 3 });
const hours = (seconds: number): string => `${(seconds / HOUR).toFixed(1)} h`;
