/** The page of plan and credits: its numbers agree with each other, and it gives customers no command of the host. */
import { expect, test } from "vitest";
import { render } from "../../../../daemon/edge/web/layout.tsx";
import { type Billing, billingPage } from "../../../../daemon/edge/web/pages/billing.tsx";

const ACCOUNT = { name: "Vera", role: "viewer", org_id: "org_1", organizations: [{ org_id: "org_1", name: "Acme" }] };
/** The part of the total that comes from the plan. */
const OF_PLAN = /\s500\s+from the plan/;
const grant = { at: "2026-11-28T10:00:00.000Z", kind: "grant", amount: 500, reason: "welcome" };
const spend = { ...grant, kind: "spend", amount: -0.001, reason: "use" };

function shown(items: object[], granted: number | null, next_cursor: string | null = null): string {
  const totals = { sandbox_seconds: 5, vcpu_seconds: 5, exec_count: 1, messages: 0, egress_bytes: 3 * 1024 ** 2 };
  const caps = { active: 1, hard_cap: 10 };
  const billing = {
    usage: { org_id: "org_1", plan: "free", warnings: [], totals, rooms: caps, sandboxes: caps },
    credits: { granted, used: 0.001, remaining: granted === null ? null : granted - 0.001, items, next_cursor },
    bought: { provider: "none", status: "none" },
  };
  return render(billingPage(ACCOUNT as never, billing as unknown as Billing)).replaceAll(/<[^>]*>/g, " ");
}

test("the plan's grant is shown next to the total, since the rows have the operator's grants", () => {
  expect(shown([spend, grant], 1000)).toMatch(OF_PLAN);
  expect(shown([spend, grant], 500)).not.toMatch(OF_PLAN);
  // On a page of several the rows are not all.
  expect(shown([spend, grant], 1000, "more")).not.toMatch(OF_PLAN);
});

test("the remaining credits are not rounded, and traffic has the unit of the other pages", () => {
  const text = shown([spend, grant], 500);
  expect(text).toContain("499.999");
  expect(text).toMatch(/Outbound traffic\s+3\.0 MiB/);
});

test("no host command is shown to customers", () => {
  expect(shown([], 500)).not.toMatch(/roomd org|on the host/);
});
