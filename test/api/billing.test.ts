/** Buying a plan: from the page to the payment service and back, and that whatever notices come, and however, the end is the same. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Notice, PaymentService } from "../fixtures/stripe.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { until } from "../harness/guests.ts";
import { People } from "../harness/people.ts";
import type { Visitor } from "../harness/visitor.ts";

const ORG = "/v1/orgs/self/billing";

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
  await until("all notices are seen to", () =>
    people.sql((database) => database.prepare("SELECT 1 FROM billing_events WHERE done_at IS NULL").get() === null),
  );
const billingOf = async (owner: Visitor): Promise<Json> => (await owner.api("GET", ORG)).body;

/** Begins to buy, as the page does. */
async function buy(owner: Visitor): Promise<string> {
  await people.prove(owner);
  const sent = await owner.send("/billing", { do: "buy" });
  expect(sent.status).toBe(303);
  return sent.to?.split("/").at(-1) ?? "";
}

describe("an owner", () => {
  test("buys plan starter, has its credits, and takes one key of it", async () => {
    const owner = await people.foreign("buyers");
    expect((await owner.see("/billing")).text).toContain("Upgrade to Starter");
    const checkout = await buy(owner);
    const back = `/billing/success?session_id=${checkout}`;
    const waiting = await owner.see(back);
    expect([waiting.text, waiting.headers.get("refresh")]).toEqual([
      expect.stringContaining("Still being confirmed"),
      "3",
    ]);
    const { customer } = service.pay(checkout);
    const paid = await owner.see(back);
    expect(paid.text).toContain("Show me my API key");
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
    expect((await daemon.api("GET", "/v1/me", undefined, { key })).status).toBe(200);
    const again = await owner.see(back);
    expect(again.text).toContain(key.slice(0, 9));
    expect(again.text).not.toContain(key);

    expect((await owner.send("/billing", { do: "buy" })).status).toBe(409);
    expect((await owner.send("/billing", { do: "portal" })).to).toBe(`${service.url}/portal/${customer}`);
  });

  test("gets nothing of what somebody else has paid, nor of what is not paid", async () => {
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

  test("is told when the payment service cannot be asked, and others go on", async () => {
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

  test("who ends the organization ends its subscription", async () => {
    const owner = await people.foreign("ending");
    const checkout = await buy(owner);
    const { subscription } = service.pay(checkout);
    await owner.see(`/billing/success?session_id=${checkout}`);
    await owner.send("/org/end", { org_name: "ending" });
    await until("it is cancelled", () => service.subscription(subscription).status === "canceled");
  });
});

describe("a notice", () => {
  test("that the service has not signed just now is refused, and one that it has is kept once", async () => {
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
    expect(people.sql((database) => database.prepare("SELECT * FROM billing_events").all())).toHaveLength(1);
    expect((await fetch(`${daemon.url}/billing/events`)).status).toBe(405);
  });

  test("may come in any order, again and late, and the service be killed: the plan and the ledger are the same", async () => {
    const life = async (order: readonly number[], killAt: number) => {
      const owner = await people.foreign();
      const checkout = await buy(owner);
      const { subscription, customer } = service.pay(checkout);
      const about = { id: subscription, object: "subscription", customer };
      const completed = await service.notice("checkout.session.completed", service.checkout(checkout));
      const [created, updated, renewed, failed, recovered, deleted] = await Promise.all(
        ["created", "updated", "updated", "updated", "updated", "deleted"].map((what) =>
          service.notice(`customer.subscription.${what}`, about),
        ),
      );
      service.renew(subscription);
      service.change(subscription, { status: "past_due" });
      service.renew(subscription);
      const [item] = service.subscription(subscription).items.data;
      item.current_period_end = Math.floor(Date.now() / 1000) - 60;
      service.change(subscription, { status: "canceled" });
      const all = [completed, created, updated, renewed, failed, recovered, deleted] as Notice[];
      for (const [n, which] of order.entries()) {
        const answer = send(all[which % all.length] as Notice).catch(() => undefined);
        if (n === killAt) await daemon.restart("SIGKILL");
        await answer;
      }
      // The service sends what was not answered again.
      await send(completed);
      await send(deleted as Notice);
      await settled();
      const { plan, status } = await billingOf(owner);
      const { items } = (await owner.api("GET", "/v1/orgs/self/credits")).body;
      return { plan, status, amounts: items.map(({ amount }: Json) => amount) };
    };
    const orders = fc.array(fc.nat(6), { minLength: 3, maxLength: 9 });
    await fc.assert(
      fc.asyncProperty(orders, fc.nat(20), async (order, killAt) => {
        expect(await life(order, killAt)).toEqual({ plan: "free", status: "ended", amounts: [1000, 1000, 1000] });
      }),
      { numRuns: 6 },
    );
  }, 120_000);

  test("of a payment that failed leaves the plan for a week", async () => {
    const owner = await people.foreign();
    const checkout = await buy(owner);
    const { subscription, customer } = service.pay(checkout);
    await owner.see(`/billing/success?session_id=${checkout}`);
    service.change(subscription, { status: "past_due" });
    const about = { id: subscription, object: "subscription", customer };
    await send(await service.notice("customer.subscription.updated", about));
    await settled();
    expect(await billingOf(owner)).toMatchObject({ plan: "starter", status: "past_due" });
    expect((await owner.see("/billing")).text).toContain("The last payment has failed");
    people.sql((database) =>
      database
        .prepare("UPDATE billing_customers SET past_due_since = '2026-01-01T00:00:00.000Z' WHERE customer_id = ?")
        .run(customer),
    );
    await send(await service.notice("customer.subscription.updated", about));
    await settled();
    expect(await billingOf(owner)).toMatchObject({ plan: "free", status: "past_due" });
  });
});

test("without a payment service nothing is sold, and no notice is taken", async () => {
  await using other = await TestDaemon.start();
  const { owner } = await People.first(other);
  expect((await owner.api("POST", `${ORG}/checkouts`)).body).toMatchObject({ status: 409, code: "billing_off" });
  expect((await owner.api("GET", ORG)).body).toMatchObject({ provider: "none", can_buy: false });
  expect((await fetch(`${other.url}/billing/events`, { method: "POST", body: "{}" })).status).toBe(404);
});
