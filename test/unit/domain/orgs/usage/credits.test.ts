/** Credits: consumption is charged, and the effects on an organization without credits left, also across a restart. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { makeLog } from "../../../../../daemon/core/log.ts";
import type { ServiceError } from "../../../../../daemon/core/service-error.ts";
import { listAudit } from "../../../../../daemon/domain/audit/index.ts";
import { Credits, grantCredits } from "../../../../../daemon/domain/orgs/usage/credits.ts";
import { addUsed, getCredits } from "../../../../../daemon/domain/orgs/usage/credits-store.ts";
import { enterSpent, listEntries } from "../../../../../daemon/domain/orgs/usage/ledger.ts";
import { FREE, MICRO, microOf } from "../../../../../daemon/domain/orgs/usage/prices.ts";
import { until } from "../../../../harness/guests.ts";
import { MeterFixture, ORG, placeOf } from "./meter-fixture.ts";

const PRICES = { ...FREE, sandbox_hour: 3600 };

/** An organization with sandboxes that cost one credit per second. */
class Account extends MeterFixture {
  readonly plan: number | null;
  readonly #graceSeconds: number;
  /** When its sandboxes were ended. */
  readonly ended: number[] = [];
  credits!: Credits;

  constructor({ plan = null, graceSeconds = 0 }: { plan?: number | null; graceSeconds?: number } = {}) {
    super(undefined, PRICES);
    this.plan = plan;
    this.#graceSeconds = graceSeconds;
    this.makeCredits();
  }

  makeCredits(): void {
    this.credits = new Credits({
      database: this.database,
      log: makeLog("error", () => {}),
      meter: this.meter,
      graceSeconds: this.#graceSeconds,
      usedElsewhere: () => 0,
      planCredits: () => this.plan,
    });
    this.credits.onExhausted(async () => void this.ended.push(Date.now()));
  }

  get balance() {
    const { warnings: _, ...balance } = this.credits.standing(this.database.queries, ORG);
    return balance;
  }

  grant(more: number | null) {
    return this.database.commit((queries) => grantCredits(queries, ORG, this.plan, more));
  }

  admits(): string[] | string {
    try {
      return this.credits.admit(this.database.queries, ORG);
    } catch (error) {
      return (error as ServiceError).code;
    }
  }

  get exhaustions() {
    return listAudit(this.database.queries, { org_id: ORG, order: "asc", limit: 100 }).filter(
      ({ event }) => event === "quota.credits_exhausted",
    );
  }

  override [Symbol.dispose](): void {
    this.credits.stop();
    super[Symbol.dispose]();
  }
}

test("each unit has its price", () => {
  const prices = { sandbox_hour: 1, vcpu_hour: 10, memory_gib_hour: 100, egress_gib: 1000, drive_gib_month: 10_000 };
  const hour = 3_600_000;
  const priceOf = (amounts: Parameters<typeof microOf>[1]) => microOf(prices, amounts) / 1_000_000;
  expect(priceOf({ sandbox_ms: hour, vcpu_ms: 2 * hour, memory_mib_ms: 512 * hour })).toBe(71);
  expect(priceOf({ egress_bytes: 3 * 1024 ** 3 })).toBe(3000);
  expect(priceOf({ drive_byte_hours: 730 * 1024 ** 3, exec_count: 5, messages: 5 })).toBe(10_000);
  expect(microOf(FREE, { sandbox_ms: hour, egress_bytes: 1e9 })).toBe(0);
});

test("an organization without a grant has no limit, and its earlier usage does not reduce a grant", async () => {
  using account = new Account();
  await account.opens("sbx_1");
  account.pass(1000);
  expect(account.balance).toEqual({ granted: null, used: 1000, remaining: null });
  expect(account.admits()).toEqual([]);
  await account.meter.checkpoint();
  await account.grant(500);
  expect(account.balance).toEqual({ granted: 1500, used: 1000, remaining: 500 });
  await account.grant(null);
  expect(account.balance.remaining).toBeNull();
});

test("credits decrease over time; a warning precedes the refusal, and a grant ends both", async () => {
  using account = new Account({ plan: 100, graceSeconds: 3600 });
  await account.opens("sbx_1");
  account.pass(89);
  expect(account.balance).toEqual({ granted: 100, used: 89, remaining: 11 });
  expect(account.admits()).toEqual([]);
  account.pass(2);
  expect(account.admits()).toEqual([expect.stringMatching(/ 9\.000 .* 100 /)]);
  account.pass(20);
  expect(account.admits()).toBe("quota_exceeded");
  await account.opens("sbx_1");
  await until("the exhaustion is recorded", async () => account.exhaustions.length === 1);
  expect(account.credits.standing(account.database.queries, ORG).warnings).toEqual([
    expect.stringMatching(/ 20\d\d-\d\d-\d\dT/),
  ]);
  await account.grant(50);
  expect(account.admits()).toEqual([]);
  expect(account.balance).toEqual({ granted: 150, used: 111, remaining: 39 });
  expect(account.ended).toEqual([]);
});

test("credits run out without a call: recorded once, and after the grace period sandboxes are ended", async () => {
  using account = new Account({ plan: 2 });
  await account.opens("sbx_1");
  // The forecast is a second away at least; by then more has passed on the meter.
  account.pass(1);
  await account.opens("sbx_2", placeOf("b"));
  // Waits until the consequences are written.
  for (let turn = 0; turn < 2; turn++) await account.database.commit(() => {});
  account.pass(60);
  await until("the sandboxes are ended", async () => account.ended.length > 0);
  expect(account.exhaustions).toHaveLength(1);
  expect(JSON.parse(String(account.exhaustions[0]?.details))).toMatchObject({ granted: 2, sandboxes: 2 });
});

test("a restart does not prolong the grace period, and ends nothing before it", async () => {
  using account = new Account({ plan: 1, graceSeconds: 2 });
  await account.opens("sbx_1");
  account.pass(10);
  await account.opens("sbx_1");
  await until("the exhaustion is recorded", async () => account.exhaustions.length === 1);
  account.credits.stop();
  account.kill();
  account.start();
  account.makeCredits();
  account.credits.start([ORG]);
  await account.opens("sbx_1");
  await until("the sandboxes are ended", async () => {
    account.pass(0.1);
    return account.ended.length > 0;
  });
  const { at } = account.exhaustions[0] ?? { at: "" };
  expect((account.ended[0] ?? 0) - Date.parse(at)).toBeGreaterThanOrEqual(2000);
  expect(account.exhaustions).toHaveLength(1);
});

test("the ledger totals grants minus usage, for any repeated calls, and a day's usage is one entry", async () => {
  const step = fc.oneof(
    fc.record({ grant: fc.integer({ min: 1, max: 1000 }), effect: fc.constantFrom("a", "b", "c", "d") }),
    fc.record({ withdraw: fc.constant(true), effect: fc.constantFrom("w", "x") }),
    fc.record({ use: fc.integer({ min: 1, max: 5_000_000 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(null, 100), fc.array(step, { maxLength: 12 }), async (plan, steps) => {
      using account = new Account({ plan });
      const { database } = account;
      for (const each of steps) {
        await database.commit((queries) => {
          if ("use" in each) {
            addUsed(queries, ORG, each.use);
            enterSpent(queries, ORG, each.use);
          } else
            grantCredits(queries, ORG, plan, "grant" in each ? each.grant : null, { reason: "r", effect: each.effect });
        });
      }
      const entries = listEntries(database.queries, ORG, null, 100);
      const { granted, used_micro } = getCredits(database.queries, ORG);
      const sum = entries.reduce((total, { amount_micro }) => total + amount_micro, 0);
      expect(sum).toBe((granted ?? 0) * MICRO - used_micro);
      expect(new Set(entries.map(({ effect }) => effect)).size).toBe(entries.length);
      expect(entries.filter(({ kind }) => kind === "spend").length).toBe(used_micro > 0 ? 1 : 0);
      account.credits.stop();
    }),
    { numRuns: process.env.ROOMD_TEST_LONG === "1" ? 40 : 8 },
  );
});
