/** Pages of an organization's plan, credits with their ledger, usage summary, and the result of a payment. */

import type { OutputOf } from "../../../../shared/api/contract.ts";
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import type { BillingRecord } from "../../../../shared/api/people/billing.ts";
import type { creditList, LedgerEntry } from "../../../../shared/api/people/credits.ts";
import type { UsageReport } from "../../../../shared/api/usage.ts";
import { Moment, Properties } from "../../../web/components/static.tsx";
import { Table } from "../../../web/components/table.tsx";
import { Post, Submit } from "../components/forms.tsx";
import type { FormReport, Page } from "../layout.tsx";
import { KeyShown, type NewKey, whoOf } from "./account.tsx";

const KINDS: Record<LedgerEntry["kind"], string> = { grant: "granted", withdrawal: "withdrawn", spend: "used" };
const HOUR = 3600;
const MIB = 1024 ** 2;

export interface Billing {
  usage: UsageReport;
  credits: OutputOf<typeof creditList>;
  bought: BillingRecord;
}

/** The source of the plan, and an owner's options. */
function Plan({ account: { role }, bought }: { account: AccountRecord; bought: BillingRecord }) {
  const { provider, status, can_buy, cancels_at_end, plan_until, period_end } = bought;
  if (provider === "none") return null;
  const statusText = {
    none: "",
    pending: "The payment is not complete.",
    active: cancels_at_end ? "The subscription was cancelled." : "",
    past_due: "The last payment failed. Update your payment method at the payment service to keep the plan.",
    ended:
      "The subscription has ended. Running sandboxes continue; nothing can be added above the limits of the free plan.",
  }[status];
  return (
    <>
      {statusText || plan_until ? (
        <p class={status === "past_due" ? "trouble" : "muted"}>
          {statusText}
          {plan_until === null ? null : (
            <>
              {" "}
              The plan is valid until <Moment at={plan_until} />.
            </>
          )}
        </p>
      ) : null}
      {status === "active" && !cancels_at_end ? (
        <p class="muted">
          Paid until <Moment at={period_end} />.
        </p>
      ) : null}
      {role === "owner" ? (
        <>
          {can_buy ? <SendTo action="buy" label="Upgrade to Starter" look="main" /> : null}
          {status === "none" ? null : <SendTo action="portal" label="Cards and invoices" look="plain" />}
        </>
      ) : (
        <p class="muted">An owner can change the plan.</p>
      )}
    </>
  );
}

const SendTo = ({ action, label, look }: { action: string; label: string; look: "main" | "plain" }) => (
  <Post to="/billing" fields={{ do: action }}>
    <Submit look={look}>{label}</Submit>
  </Post>
);

export interface Success {
  checkout_id: string;
  is_paid: boolean;
  plan: string;
  /** Prefix of the key that was issued for this payment. */
  key_prefix: string | null;
  /** The key, if it was just created. */
  made: NewKey | null;
}

/** The key of a payment, to be created once. */
function PaidKey({ account: { role }, of }: { account: AccountRecord; of: Success }) {
  const { checkout_id, key_prefix, made } = of;
  if (made) return <KeyShown of={made} />;
  if (key_prefix !== null) {
    return (
      <p>
        The key of this payment is <code>{key_prefix}…</code>. It was shown once. <a href="/account/keys">Other keys</a>
      </p>
    );
  }
  if (role !== "owner") return null;
  return (
    <>
      <Post to="/billing/success" fields={{ session_id: checkout_id }}>
        <Submit look="main">Show my API key</Submit>
      </Post>
      <p class="muted">It is shown once.</p>
    </>
  );
}

/** The page after returning from the payment. */
export function successPage(account: AccountRecord, seen: Success, report: FormReport = {}): Page {
  const who = whoOf(account);
  return {
    title: seen.is_paid ? "Thank you" : "Confirming your payment",
    who,
    report,
    body: (
      <>
        {seen.is_paid ? (
          <>
            <p>
              The plan of <bdi>{who.org}</bdi> is <b>{seen.plan}</b>.
            </p>
            <PaidKey account={account} of={seen} />
          </>
        ) : (
          <p role="status">The payment service has not confirmed the payment yet. This page refreshes automatically.</p>
        )}
        <p>
          <a href="/billing">Billing</a>
        </p>
      </>
    ),
  };
}

export function billingPage(
  account: AccountRecord,
  { usage, credits, bought }: Billing,
  report: FormReport = {},
): Page {
  const { granted, used, remaining, items, next_cursor } = credits;
  // The rows below contain the operator's grants only.
  const byRows = items.reduce((sum, { kind, amount }) => (kind === "spend" ? sum : sum + amount), 0);
  const planned = granted === null || next_cursor !== null ? 0 : granted - byRows;
  const rows = items.map(({ at, kind, amount, reason }, n) => ({
    key: n,
    cells: { When: <Moment at={at} />, Type: KINDS[kind], Reason: <bdi>{reason}</bdi>, Credits: shown(amount) },
  }));
  const { totals, rooms, sandboxes } = usage;
  return {
    title: "Billing",
    leadsOut: bought.provider !== "none",
    who: whoOf(account),
    at: "/billing",
    report,
    body: (
      <>
        {usage.warnings.map((warning) => (
          <p key={warning} class="trouble">
            {warning}
          </p>
        ))}
        <h2>Plan</h2>
        <Properties
          of={{
            Plan: usage.plan,
            Rooms: `${shown(rooms.active)} of ${shown(rooms.hard_cap)}`,
            Sandboxes: `${shown(sandboxes.active)} of ${shown(sandboxes.hard_cap)}`,
          }}
        />
        <Plan account={account} bought={bought} />
        <h2>Credits</h2>
        {granted === null ? (
          <p>This organization has no credit limit.</p>
        ) : (
          <Properties
            of={{
              Remaining: <b>{shown(remaining ?? 0)}</b>,
              Granted: (
                <>
                  {shown(granted)}{" "}
                  {planned > 0 ? <span class="muted">including {shown(planned)} from the plan</span> : null}
                </>
              ),
              Used: shown(used),
            }}
          />
        )}
        {bought.provider === "none" ? <p class="muted">The operator of this service grants credits.</p> : null}
        <h2>This month</h2>
        <Properties
          of={{
            Sandboxes: hours(totals.sandbox_seconds),
            Processors: hours(totals.vcpu_seconds),
            Commands: shown(totals.exec_count),
            Messages: shown(totals.messages),
            "Outbound traffic": `${(totals.egress_bytes / MIB).toFixed(1)} MiB`,
          }}
        />
        <h2>Credit history</h2>
        {rows.length > 0 ? (
          <Table classes={{ Credits: "num" }} rows={rows} />
        ) : (
          <p class="muted">No credits granted or used yet.</p>
        )}
        {next_cursor === null ? null : (
          <p class="muted">
            Older entries are in the API: <code>/v1/orgs/self/credits</code>.
          </p>
        )}
      </>
    ),
  };
}

const shown = (credits: number): string => credits.toLocaleString("en", { maximumFractionDigits: 3 });
const hours = (seconds: number): string => `${(seconds / HOUR).toFixed(1)} h`;
