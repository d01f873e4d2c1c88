/** Buying a plan: from the page to the payment service and back, and that whatever notices come, and however, the end is the same. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Notice, PaymentService } from "../../fixtures/stripe.ts";
import type { Visitor } from "../../harness/browser/visitor.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { People } from "../../harness/people.ts";

const ORG = "/v1/orgs/self/billing";
const daysAgo = (days: number) => Math.floor(Date.now() / 1000) - days * 86_400;

/** Next event of a subscription, its notices or the daemon. */
interface Moment {
  what: string;
  which: number;
}

let service: PaymentService;
let daemon: TestDaemon;
let people: People;
let secrets: string;

beforeAll(async () => {
  service = new PaymentService();
  secrets = mkdtempSync(join(tmpdir(), "roomd-billing-"));
  writeFileSync(join(secrets, "key"), `${service.secretKey}\n`);
  writeFileSync(join(secrets, "webhook"), `${service.webhookSecret}\n`);
  daemon = await TestDaemon.start({
    env: {
      ROOMD_BILLING_PROVIDER: "stripe",
      ROOMD_BILLING_MONTHLY_CREDITS: "1000",
      ROOMD_BILLING_STRIPE_SECRET_KEY_FILE: join(secrets, "key"),
      ROOMD_BILLING_STRIPE_WEBHOOK_SECRET_FILE: join(secrets, "webhook"),
      ROOMD_BILLING_STRIPE_PRICE: service.price,
      ROOMD_BILLING_STRIPE_API_URL: service.url,
    },
  });
  people = await People.first(daemon);
});
afterAll(async () => {
  await daemon.stop();
  await service.stop();
  rmSync(secrets, { recursive: true });
});

const send = async ({ body, signature }: Notice) =>
  await fetch(`${daemon.url}/billing/events`, { method: "POST", body, headers: { "stripe-signature": signature } });
const settled = async () =>
  await until("all notices are processed", () =>
    people.sql((database) => database.prepare("SELECT 1 FROM billing_events WHERE done_at IS NULL").get() === null),
  );
/** Sends a notice that the subscription has changed, as the payment service does. */
const tell = async (subscription: string) => {
  const { id, customer } = service.subscription(subscription);
  const about = { id, object: "subscription", customer };
  expect((await send(await service.notice("customer.subscription.updated", about))).status).toBe(200);
};
const notifyAndSettle = async (subscription: string) => {
  await tell(subscription);
  await settled();
};
const billingOf = async (owner: Visitor): Promise<Json> => (await owner.api("GET", ORG)).body;

/** Starts a purchase, as the page does. */
async function buy(owner: Visitor): Promise<string> {
  await people.prove(owner);
  const sent = await owner.send("/billing", { do: "buy" });
  expect(sent.status).toBe(303);
  return sent.to?.split("/").at(-1) ?? "";
}

describe("an owner", () => {
  test("buys the plan starter, gets its credits, and receives one key for it", async () => {
    const owner = await people.foreign("buyers");
    expect((await owner.see("/billing")).text).toContain('name="do" value="buy"');
    const checkout = await buy(owner);
    const back = `/billing/success?session_id=${checkout}`;
    const waiting = await owner.see(back);
    expect(waiting.headers.get("refresh")).toBe("3");
    const { customer } = service.pay(checkout);
    const paid = await owner.see(back);
    expect(paid.text).toContain('name="session_id"');
    expect(await billingOf(owner)).toMatchObject({
      provider: "stripe",
      plan: "starter",
      status: "active",
      can_buy: false,
    });
    const { granted, items } = (await owner.api("GET", "/v1/orgs/self/credits")).body;
    expect([granted, items]).toEqual([1000, [expect.objectContaining({ kind: "grant", amount: 1000 })]]);

    const both = await Promise.all([1, 2].map(() => owner.api("POST", `${ORG}/checkouts/${checkout}/key`)));
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
    const { key } = both.find(({ status }) => status === 201)?.body ?? {};
    const me = await daemon.api("GET", "/v1/me", undefined, { authorization: `Bearer ${key}` });
    expect([me.status, me.body.org_id]).toEqual([200, (await owner.api("GET", "/v1/account")).body.org_id]);
    const again = await owner.see(back);
    expect(again.text).toContain(key.slice(0, 9));
    expect(again.text).not.toContain(key);

    expect((await owner.send("/billing", { do: "buy" })).status).toBe(409);
    expect((await owner.send("/billing", { do: "portal" })).to).toBe(`${service.url}/portal/${customer}`);
  });

  test("gets no access to another owner's checkout or to an unpaid one", async () => {
    const [mine, other] = [await people.foreign(), await people.foreign()];
    const checkout = await buy(mine);
    await people.prove(other);
    service.pay(checkout);
    for (const path of [`${ORG}/checkouts/${checkout}`, `${ORG}/checkouts/none`]) {
      expect((await other.api("GET", path)).status).toBe(404);
      expect((await other.api("POST", `${path}/key`)).status).toBe(404);
    }
    expect(await billingOf(other)).toMatchObject({ plan: "free", status: "none" });
    const open = await buy(other);
    expect((await other.api("POST", `${ORG}/checkouts/${open}/key`)).status).toBe(409);
  });

  test("gets billing_failed while the payment service is unreachable; other pages keep working", async () => {
    const owner = await people.foreign();
    await people.prove(owner);
    service.isDown = true;
    try {
      expect((await owner.api("POST", `${ORG}/checkouts`)).body).toMatchObject({ status: 502, code: "billing_failed" });
      expect((await owner.see("/billing")).status).toBe(200);
    } finally {
      service.isDown = false;
    }
  });

  test("pays once: two attempts share a checkout, and another is created only when that has ended", async () => {
    const owner = await people.foreign();
    await people.prove(owner);
    const both = await Promise.all([1, 2].map(() => owner.api("POST", `${ORG}/checkouts`)));
    const [first] = both.map(({ body }) => body.checkout_id);
    expect(both.map(({ body }) => body.checkout_id)).toEqual([first, first]);
    expect(await buy(owner)).toBe(first);
    const { subscription } = service.pay(first, daysAgo(40));
    // The notice has not been sent yet.
    expect((await owner.api("POST", `${ORG}/checkouts`)).status).toBe(409);
    expect(await billingOf(owner)).toMatchObject({ plan: "starter" });
    service.change(subscription, { status: "canceled" });
    await notifyAndSettle(subscription);
    expect(await billingOf(owner)).toMatchObject({ plan: "free", status: "ended", can_buy: true });
    const second = await buy(owner);
    expect(second).not.toBe(first);
    const { customer } = service.pay(second);
    expect(customer).toBe(service.subscription(subscription).customer);
    await owner.see(`/billing/success?session_id=${second}`);
    expect(await billingOf(owner)).toMatchObject({ plan: "starter", status: "active" });
  });
});

test("can buy when the payment service has switched to another account (test or live)", async () => {
  const owner = await people.foreign();
  await buy(owner);
  service.becomeAnother();
  const checkout = await buy(owner);
  service.pay(checkout);
  await owner.see(`/billing/success?session_id=${checkout}`);
  expect(await billingOf(owner)).toMatchObject({ plan: "starter", status: "active" });
});

describe("the subscription of an organization that ends", () => {
  const ended = async (orgId: string) =>
    await until(
      "the organization is deleted",
      () =>
        people.sql((database) => database.prepare("SELECT ended_at FROM orgs WHERE org_id = ?").get(orgId) as Json)
          .ended_at,
    );
  const begin = async (name: string) => {
    const owner = await people.foreign(name);
    const checkout = await buy(owner);
    const { org_id } = (await owner.api("GET", "/v1/account")).body;
    const end = async () => {
      await owner.send("/org/end", { org_name: name });
      await ended(org_id);
    };
    return { owner, checkout, end };
  };
  const statusOf = (subscription: string) => service.subscription(subscription).status;

  test("is cancelled completely", async () => {
    const { owner, checkout, end } = await begin("ending");
    const { subscription, customer } = service.pay(checkout);
    await owner.see(`/billing/success?session_id=${checkout}`);
    const other = service.addSubscription(customer);
    await end();
    expect([subscription, other].map(statusOf)).toEqual(["canceled", "canceled"]);
  });

  test("is cancelled even if its payment was not reported yet", async () => {
    const { checkout, end } = await begin("paid then ended");
    const { subscription } = service.pay(checkout);
    await end();
    expect(statusOf(subscription)).toBe("canceled");
  });

  test("cannot be paid afterwards, and a late subscription is cancelled", async () => {
    const { checkout, end } = await begin("ended then paid");
    await end();
    expect(() => service.pay(checkout)).toThrow(checkout);
    const late = service.addSubscription(service.checkout(checkout).customer);
    await notifyAndSettle(late);
    expect(statusOf(late)).toBe("canceled");
  });
});

describe("a notice", () => {
  test("with a stale or invalid signature is refused, and a valid one is stored once", async () => {
    const object = { id: "cs_none", object: "checkout.session", customer: "cus_none" };
    const good = await service.notice("checkout.session.completed", object);
    const refused = [
      await service.notice("x", object, { secret: "whsec_another" }),
      await service.notice("x", object, { at: Date.now() - 600_000 }),
      { ...good, body: good.body.replace("cs_none", "cs_more") },
      { ...good, signature: "" },
    ];
    for (const notice of refused) expect((await send(notice)).status).toBe(400);
    expect([(await send(good)).status, (await send(good)).status]).toEqual([200, 200]);
    await settled();
    const { id } = JSON.parse(good.body);
    const kept = people.sql((database) => database.prepare("SELECT 1 FROM billing_events WHERE event_id = ?").all(id));
    expect(kept).toHaveLength(1);
    expect((await fetch(`${daemon.url}/billing/events`)).status).toBe(405);
  });

  test("may arrive in any order, repeated, late and across kills: plan and ledger are the same", async () => {
    const life = async (plan: readonly Moment[]) => {
      const owner = await people.foreign();
      const checkout = await buy(owner);
      const { subscription, customer } = service.pay(checkout, daysAgo(120));
      const about = { id: subscription, object: "subscription", customer };
      const notices = [await service.notice("checkout.session.completed", service.checkout(checkout))];
      const steps = [
        () => service.renew(subscription),
        () => service.fail(subscription),
        () => service.recover(subscription),
        () => service.prorate(subscription, Math.floor(Date.now() / 1000)),
        () => service.change(subscription, { status: "canceled" }),
      ];
      const step = async () => {
        steps.shift()?.();
        notices.push(await service.notice("customer.subscription.updated", about));
      };
      for (const { what, which } of plan) {
        if (what === "step" && steps.length > 0) await step();
        else if (what === "notice") await send(notices[which % notices.length] as Notice);
        else if (what === "kill") {
          // The daemon has received the notice, and is killed while it queries the change.
          const requestCount = service.asked.length;
          service.isSilent = true;
          await send(await service.notice("customer.subscription.updated", about));
          await until("the payment service is queried", () => service.asked.length > requestCount);
          await daemon.end("SIGKILL");
          service.isSilent = false;
          await daemon.serve();
        }
      }
      while (steps.length > 0) await step();
      // The service resends unanswered notices.
      for (const notice of notices.toReversed()) await send(notice);
      await settled();
      const { plan: bought, status } = await billingOf(owner);
      const { items } = (await owner.api("GET", "/v1/orgs/self/credits")).body;
      return { plan: bought, status, amounts: items.map(({ amount }: Json) => amount) };
    };
    const moment = fc.record({
      what: fc.constantFrom("step", "step", "notice", "notice", "kill"),
      which: fc.nat(6),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(moment, { minLength: 4, maxLength: 10 }), async (plan) => {
        expect(await life(plan)).toEqual({ plan: "free", status: "ended", amounts: [1000, 1000, 1000] });
      }),
      {
        numRuns: 8,
        examples: [
          [
            [
              { what: "kill", which: 0 },
              { what: "step", which: 0 },
              { what: "kill", which: 0 },
            ],
          ],
        ],
      },
    );
  }, 180_000);
});

describe("a subscription", () => {
  const bought = async (days = 0) => {
    const owner = await people.foreign();
    const checkout = await buy(owner);
    const paid = service.pay(checkout, daysAgo(days));
    await owner.see(`/billing/success?session_id=${checkout}`);
    const { org_id } = (await owner.api("GET", "/v1/account")).body;
    return { owner, org_id, ...paid };
  };
  const pastDueSince = (customer: string, since: string) =>
    people.sql((database) =>
      database.prepare("UPDATE billing_customers SET past_due_since = ? WHERE customer_id = ?").run(since, customer),
    );

  test.each(["canceled", "unpaid"])(
    "whose payment failed keeps the plan for a week, and no longer once it is %s",
    async (end) => {
      const { owner, subscription, customer } = await bought(40);
      service.fail(subscription);
      await notifyAndSettle(subscription);
      expect(await billingOf(owner)).toMatchObject({ plan: "starter", status: "past_due" });
      pastDueSince(customer, "2026-01-01T00:00:00.000Z");
      await notifyAndSettle(subscription);
      expect(await billingOf(owner)).toMatchObject({ plan: "free", status: "past_due" });
      service.change(subscription, { status: end });
      await notifyAndSettle(subscription);
      expect(await billingOf(owner)).toMatchObject({ plan: "free", can_buy: end !== "unpaid" });
    },
  );

  test("that is cancelled keeps the plan until the end of the paid period", async () => {
    for (const [days, plan] of [
      [0, "starter"],
      [40, "free"],
    ] as const) {
      const { owner, subscription } = await bought(days);
      service.change(subscription, { status: "canceled" });
      await notifyAndSettle(subscription);
      expect(await billingOf(owner)).toMatchObject({ plan, status: "ended", can_buy: true });
    }
  });

  test("whose first payment never arrived grants nothing", async () => {
    const { owner, subscription, customer } = await bought(40);
    service.change(subscription, { status: "canceled" });
    const other = service.addSubscription(customer);
    for (const status of ["incomplete", "incomplete_expired"]) {
      service.change(other, { status });
      await notifyAndSettle(other);
      expect(await billingOf(owner)).toMatchObject({ plan: "free" });
    }
  });

  test("that awaits its payment blocks another purchase, also after an earlier subscription", async () => {
    const { owner, subscription, customer } = await bought(40);
    service.change(subscription, { status: "canceled" });
    await notifyAndSettle(subscription);
    expect(await billingOf(owner)).toMatchObject({ status: "ended", can_buy: true });
    const other = service.addSubscription(customer);
    service.change(other, { status: "unpaid" });
    await notifyAndSettle(other);
    expect(await billingOf(owner)).toMatchObject({ plan: "free", status: "pending", can_buy: false });
  });

  test("that is changed within its month brings no more credits", async () => {
    const { owner, subscription } = await bought();
    for (const n of [100, 200, 300]) service.prorate(subscription, Math.floor(Date.now() / 1000) + n);
    await notifyAndSettle(subscription);
    expect((await owner.api("GET", "/v1/orgs/self/credits")).body.granted).toBe(1000);
  });

  test("that is cancelled immediately and bought again within its month brings no more credits", async () => {
    const { owner, subscription } = await bought();
    service.change(subscription, { status: "canceled" });
    await notifyAndSettle(subscription);
    const again = service.pay(await buy(owner), Math.floor(Date.now() / 1000) + 60);
    await notifyAndSettle(again.subscription);
    expect(await billingOf(owner)).toMatchObject({ plan: "starter", status: "active" });
    expect((await owner.api("GET", "/v1/orgs/self/credits")).body.granted).toBe(1000);
  });

  test("does not remove, when it ends, a plan that the operator has granted since", async () => {
    const { owner, subscription, org_id } = await bought(40);
    const set = await daemon.cli(["org", "set-plan", "--org", org_id, "--plan", "starter"]);
    expect(set).toMatchObject({ status: 0 });
    service.change(subscription, { status: "canceled" });
    await notifyAndSettle(subscription);
    expect(await billingOf(owner)).toMatchObject({ plan: "starter", status: "ended", plan_until: null });
  });
});

test("an unresponsive payment service does not delay the daemon's stop", async () => {
  const owner = await people.foreign();
  const checkout = await buy(owner);
  const { subscription } = service.pay(checkout);
  const requestCount = service.asked.length;
  service.isSilent = true;
  await tell(subscription);
  await until("the payment service is queried", () => service.asked.length > requestCount);
  const startedAt = performance.now();
  await daemon.end("SIGTERM");
  const tookMs = performance.now() - startedAt;
  service.isSilent = false;
  await daemon.serve();
  await settled();
  expect(await billingOf(owner)).toMatchObject({ plan: "starter" });
  // The timeout of a pending request to the service is 20 s.
  expect(tookMs).toBeLessThan(15_000);
}, 60_000);

test("an empty secret file is rejected", async () => {
  const empty = join(secrets, "empty");
  writeFileSync(empty, "\n");
  const result = await daemon.cli(["serve"], undefined, { ROOMD_BILLING_STRIPE_WEBHOOK_SECRET_FILE: empty });
  expect(result).toMatchObject({ status: 2, stderr: expect.stringContaining(empty) });
});

test("without a payment service nothing is sold, and notices are rejected", async () => {
  await using other = await TestDaemon.start();
  const { owner } = await People.first(other);
  expect((await owner.api("POST", `${ORG}/checkouts`)).body).toMatchObject({ status: 409, code: "billing_off" });
  expect((await owner.api("GET", ORG)).body).toMatchObject({ provider: "none", can_buy: false });
  expect((await fetch(`${other.url}/billing/events`, { method: "POST", body: "{}" })).status).toBe(404);
});
