/** Ways that lead elsewhere and back, in a real browser: an account at an issuer, and the payment service. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { beforeAll, expect, test } from "vitest";
import { bearer } from "../api/calls.ts";
import { OpenIdProvider } from "../fixtures/openid-provider.ts";
import { PaymentService } from "../fixtures/stripe.ts";
import { realNode } from "../harness/clients/real-terminal.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { until } from "../harness/guests.ts";
import { People } from "../harness/people.ts";

const READER = join(import.meta.dirname, "../harness/browser/elsewhere-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const hasBrowser = existsSync(CHROMIUM);
if (!hasBrowser) console.log(`sign-in and payment pages in a browser: left out, because there is no ${CHROMIUM}`);

let seen: Json;
let service: PaymentService;
let me: Json;
beforeAll(async () => {
  if (!hasBrowser) return;
  const home = mkdtempSync(join(tmpdir(), "roomd-elsewhere-"));
  const issuer = new OpenIdProvider();
  issuer.person = { sub: "eve", email: "eve@example.org", email_verified: true, name: "Eve" };
  service = new PaymentService();
  const files = { oidc: issuer.client.secret, key: service.secretKey, webhook: service.webhookSecret };
  for (const [name, secret] of Object.entries(files)) writeFileSync(join(home, name), secret);
  await using daemon = await TestDaemon.start({
    env: {
      ROOMD_BILLING_PROVIDER: "stripe",
      ROOMD_BILLING_MONTHLY_CREDITS: "1000",
      ROOMD_BILLING_STRIPE_SECRET_KEY_FILE: join(home, "key"),
      ROOMD_BILLING_STRIPE_WEBHOOK_SECRET_FILE: join(home, "webhook"),
      ROOMD_BILLING_STRIPE_PRICE: service.price,
      ROOMD_BILLING_STRIPE_API_URL: service.url,
    },
  });
  const people = await People.first(daemon);
  const { org_id } = (await people.owner.api("GET", "/v1/account")).body;
  Object.assign(daemon.env, {
    ROOMD_OIDC_ISSUER: issuer.issuer,
    ROOMD_OIDC_CLIENT_ID: issuer.client.id,
    ROOMD_OIDC_CLIENT_SECRET_FILE: join(home, "oidc"),
    ROOMD_OIDC_NAME: "Example",
    ROOMD_OIDC_ROLE: "member",
    ROOMD_OIDC_ORG: org_id,
  });
  await daemon.restart();
  const buyer = await people.foreign("Department of long names, and of rooms");
  await people.prove(buyer);

  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const reader = Bun.spawn([realNode(), READER, CHROMIUM, daemon.webUrl, pictures], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const errors = reader.stderr.text();
  const tell = (message: Json) => {
    reader.stdin.write(`${JSON.stringify(message)}\n`);
    reader.stdin.flush();
  };
  tell(Object.fromEntries(buyer.cookies));
  let paid: { customer: string; subscription: string } | null = null;
  for await (const line of createInterface({ input: Readable.fromWeb(reader.stdout as never) })) {
    seen = JSON.parse(line);
    if (seen.checkout) paid = service.pay(seen.checkout);
    else if (seen.failing && paid) {
      service.fail(paid.subscription);
      const about = { id: paid.subscription, object: "subscription", customer: paid.customer };
      const { body, signature } = await service.notice("customer.subscription.updated", about);
      await fetch(`${daemon.url}/billing/events`, { method: "POST", body, headers: { "stripe-signature": signature } });
      const billing = async () => (await buyer.api("GET", "/v1/orgs/self/billing")).body.status;
      await until("the subscription is past due", async () => (await billing()) === "past_due");
    } else continue;
    tell({});
  }
  expect([await reader.exited, await errors]).toEqual([0, ""]);
  const key = /ROOMD_API_KEY=(\S+)/.exec(seen.exports)?.[1] ?? "";
  me = (await daemon.api("GET", "/v1/me", undefined, bearer(key))).body;
  await issuer.stop();
  await service.stop();
  rmSync(home, { recursive: true });
}, 600_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("a person signs in through an identity provider, with script and without", () => {
  expect([seen.with_script, seen.without_script]).toEqual(
    Array.from({ length: 2 }, () => expect.stringContaining("eve@example.org")),
  );
});

inBrowser("an owner goes to pay, sees the payment immediately, and takes one working key", () => {
  expect(seen.paying).toMatch(/\/pay\/cs_test_/);
  expect(me).toMatchObject({ name: "from billing" });
  expect(seen.again).toMatch(/\bkey-\S+…/);
});

inBrowser("an owner with a failed payment sees that, and is led to the payment portal", () => {
  expect(seen.past_due).toContain("The last payment failed");
  expect(seen.portal).toMatch(/\/portal\/cus_/);
});

inBrowser("no complaints by axe, the content security policy or the console, and no overflow", () => {
  expect([seen.violations, seen.overflows]).toEqual([[], []]);
  // The payment service of this test has no pages.
  expect(seen.complaints.filter((each: string) => !each.includes("status of 40"))).toEqual([]);
});
