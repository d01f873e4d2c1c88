/**
 * A webhook's lane in a simulated world: a real chain in a database in memory, a receiver that is a function, and crashes, after which only
 * the database is left of a lane. In every case each event is accepted in the end, and in order as long as nothing fails.
 */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Deadlines } from "../../../../daemon/core/concurrency/deadlines.ts";
import { FairSemaphore } from "../../../../daemon/core/concurrency/fair-semaphore.ts";
import { Notifier } from "../../../../daemon/core/concurrency/notifier.ts";
import type { Log } from "../../../../daemon/core/log.ts";
import type { Connection } from "../../../../daemon/db/client.ts";
import type { Reads } from "../../../../daemon/db/readers/pool.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { chainKey } from "../../../../daemon/domain/audit/chain/chain-key.ts";
import { CHAIN_TOPIC, topicGroup } from "../../../../daemon/domain/audit/chain/chain-notifier.ts";
import { Chains } from "../../../../daemon/domain/audit/chain/forward-records.ts";
import { makeMadeEnds } from "../../../../daemon/domain/orgs/index.ts";
import type { Attempt, Message } from "../../../../daemon/domain/webhooks/attempt.ts";
import { Lane, type LaneDeps } from "../../../../daemon/domain/webhooks/delivery-lane.ts";
import { webhooksMade } from "../../../../daemon/domain/webhooks/made.ts";
import { Pace } from "../../../../daemon/domain/webhooks/pace.ts";
import {
  countWaiting,
  getProgress,
  getWebhook,
  insertProgress,
  insertWebhook,
  listDeliveries,
  putDelivery,
} from "../../../../daemon/domain/webhooks/store.ts";
import {
  type DeliveryRow,
  noProgress,
  type ProgressRow,
  type WebhookRow,
} from "../../../../daemon/domain/webhooks/table.ts";
import type { AuditRecord } from "../../../../shared/api/audit.ts";
import { MAX_OVER, MAX_TRIES, MAX_WAITING } from "../../../../shared/api/webhooks.ts";
import type { OrgId, WebhookId } from "../../../../shared/ids.ts";
import { until } from "../../../harness/guests.ts";
import { Chance } from "../../../harness/random.ts";
import { append, auditDatabase, ORG } from "../audit/audit-fixture.ts";

const ID = "whk_test" as WebhookId;
const OK: Attempt = {
  ...{ delivered: true, isGone: false, status: 204, error: null, asked_seconds: null, at_ms: 0, duration_ms: 1 },
};
const FAILED: Attempt = { ...OK, delivered: false, status: 500, error: "no" };

/** Internal errors, from the log. */
const broken: string[] = [];
const silent = () => {};
const LOG: Log = {
  ...{ debug: silent, info: silent, warn: silent, error: (message: string) => void broken.push(message) },
  with: () => LOG,
};

let connection: Connection;
let database: Database;
let bells: Notifier;
let deadlines: Deadlines;
let lane: Lane | null = null;
/** Events that the receiver has accepted, in order. */
let taken: string[];
/** The response to the event of this number. */
let answer: (n: number) => Attempt;
let pace: Pace;
/** Attempts that have started. */
let attemptCount: number;
/** The receiver answers after that. */
let holding: Promise<void>;
let isMakerGood: boolean;

beforeEach(() => {
  connection = auditDatabase();
  database = makeDatabase(connection);
  bells = new Notifier();
  deadlines = new Deadlines(() => lane?.look());
  taken = [];
  answer = () => OK;
  holding = Promise.resolve();
  attemptCount = 0;
  isMakerGood = true;
  pace = new Pace({ perSecond: 100_000, atOnce: 100_000 });
  connection.execute("PRAGMA foreign_keys = OFF");
  insertWebhook(connection.queries, {
    ...{ webhook_id: ID, org_id: ORG as OrgId, sealed_url: "", types: ["drive."], room_ids: null },
    ...{ disabled_reason: null, disabled_at: null, secret_number: 1, former_until: null, created_at: "" },
    ...{ created_by_type: "key", created_by_id: "kid_1", updated_at: "", renewed_at: "", begins_at: "" },
  });
  insertProgress(connection.queries, { webhook_id: ID, ...noProgress(0), renewed_at: "" });
});
afterEach(async () => {
  await lane?.close();
  lane = null;
  await database.close();
});

const row = (): WebhookRow => getWebhook(connection.queries, ORG as OrgId, ID) as WebhookRow;
const progress = (): ProgressRow => getProgress(connection.queries, ID) as ProgressRow;
const waiting = () => countWaiting(connection.queries, ID);

const chains = () => new Chains(connection.queries, {} as Reads, bells);

function open(): Lane {
  const deps: LaneDeps = {
    database,
    shared: database,
    log: LOG,
    chains: chains(),
    pace,
    places: new FairSemaphore({ all: 8, org: 8, sandbox: 8, waiting: 16 }),
    deadlines,
    isMakerGood: () => isMakerGood,
    endMade: (orgId) => {
      const isOver = () => sql`${!isMakerGood}`;
      const { endMade } = makeMadeEnds([webhooksMade], isOver);
      return database.commit((queries) => void endMade(queries, orgId));
    },
    attempt: async (_webhook, { body }: Message, signal) => {
      const { n } = JSON.parse(body).data.room_id.match(/(?<n>\d+)$/).groups;
      await Promise.resolve();
      attemptCount++;
      await holding;
      const given = signal.aborted ? FAILED : answer(Number(n));
      if (given.delivered) taken.push(n);
      return { ...given, at_ms: Date.now() };
    },
    onDisabled: (disabled) => void disabled.close(),
  };
  lane = new Lane(deps, row(), progress());
  return lane;
}
/** Events from `from` on, of which the lane is woken. */
async function happen(from: number, count: number): Promise<void> {
  await database.commit(() => {
    for (let n = from; n < from + count; n++) append(connection, n, { event: "drive.written", room_id: `room-${n}` });
  });
  bells.ring(topicGroup(chainKey(ORG)), CHAIN_TOPIC);
}

/** Everything that waits is due. */
function passTime(): void {
  connection.execute("UPDATE webhook_deliveries SET next_at = '2000-01-01T00:00:00.000Z' WHERE next_at IS NOT NULL");
  lane?.look();
}

/** The only event stored for retry, after this number of attempts. */
async function oneAside(attempts: number): Promise<DeliveryRow> {
  answer = (n) => (n === 0 ? FAILED : OK);
  open();
  await happen(0, 1);
  await until("the delivery is queued for a retry", () => waiting() === 1);
  connection.execute(`UPDATE webhook_deliveries SET attempts = ${attempts}`);
  return listDeliveries(connection.queries, ID, null, 1)[0] as DeliveryRow;
}
const aside = () => listDeliveries(connection.queries, ID, null, 1)[0] as DeliveryRow;

const numbers = (from: number, count: number) => Array.from({ length: count }, (_, n) => String(from + n));

test("events are delivered in order, each once, and the position is written in batches", async () => {
  open();
  let writes = 0;
  database.beforeCommit(() => void writes++);
  await happen(0, 300);
  await until("all events are delivered", () => taken.length === 300);
  expect(taken).toEqual(numbers(0, 300));
  await lane?.close();
  expect(progress()).toMatchObject({ seq: 300, sent_count: 300, failing_since: null });
  expect(writes).toBeLessThan(30);
});

test("no more events are sent once its maker has ended: it is disabled, and keeps its position", async () => {
  open();
  await happen(0, 2);
  await until("both events are delivered", () => taken.length === 2);
  isMakerGood = false;
  await happen(2, 1);
  await until("the webhook is disabled", () => row().disabled_reason === "maker_ended");
  await lane?.close();
  expect([taken, progress().seq]).toEqual([["0", "1"], 2]);
});

test("its organization's rate limit holds, and the events still arrive in order", async () => {
  pace = new Pace({ perSecond: 100, atOnce: 5 });
  const began = performance.now();
  open();
  await happen(0, 25);
  await until("all events are delivered", () => taken.length === 25);
  expect(performance.now() - began).toBeGreaterThanOrEqual(190);
  expect(taken).toEqual(numbers(0, 25));
});

test("a failed event is set aside in one commit with the position, and later ones continue", async () => {
  answer = (n) => (n === 1 ? FAILED : OK);
  open();
  await happen(0, 4);
  await until("the other events are delivered", () => taken.length === 3);
  expect(taken).toEqual(["0", "2", "3"]);
  expect(listDeliveries(connection.queries, ID, null, 9)).toMatchObject([{ seq: 2, attempts: 1, state: "waiting" }]);
  answer = () => OK;
  passTime();
  await until("the event is delivered", () => taken.length === 4);
});

test("events set aside are limited: above that the position waits in the chain, and none is lost", {
  timeout: 60_000,
}, async () => {
  answer = () => FAILED;
  open();
  await happen(0, MAX_WAITING + 100);
  await until("the retry queue is full", () => waiting() === MAX_WAITING, 30_000);
  expect(lane?.progress.seq).toBe(MAX_WAITING);
  answer = () => OK;
  await until(
    "all events are delivered",
    () => {
      passTime();
      return new Set(taken).size === MAX_WAITING + 100;
    },
    30_000,
  );
  await until("the retry queue is empty", () => waiting() === 0);
  // A limited number of finished events is retained.
  expect(listDeliveries(connection.queries, ID, null, 2 * MAX_WAITING).length).toBeLessThanOrEqual(MAX_OVER);
});

describe("an event that is never accepted", () => {
  test("by a receiver that accepts others is dropped after its last attempt, and counted", async () => {
    await oneAside(MAX_TRIES - 2);
    passTime();
    await until("the delivery is attempted", () => aside().attempts === MAX_TRIES - 1);
    expect([aside().state, lane?.progress.failed_count]).toEqual(["waiting", 0]);
    passTime();
    await until("the delivery has failed", () => aside().state === "failed");
    expect(aside()).toMatchObject({ attempts: MAX_TRIES, next_at: null });
    expect(progress().failed_count).toBe(1);
    expect(lane?.progress.failed_count).toBe(1);
  });

  test("by a receiver that accepts none stays when the webhook is disabled", async () => {
    await oneAside(MAX_TRIES - 1);
    await lane?.close();
    connection.execute("UPDATE webhook_progress SET failing_since = '2000-01-01T00:00:00.000Z'");
    open();
    passTime();
    await until("the webhook is disabled", () => row().disabled_reason === "failing");
    expect(aside()).toMatchObject({ state: "waiting", attempts: MAX_TRIES, next_at: expect.any(String) });
    expect(progress().failed_count).toBe(0);
  });
});

describe("an event requested again during an attempt", () => {
  test.each([
    ["is not taken", FAILED],
    ["is taken", OK],
  ])("is retried as a new one if that attempt %s", async (_, given) => {
    const before = await oneAside(5);
    const { promise, resolve } = Promise.withResolvers<void>();
    holding = promise;
    let tries = 0;
    answer = () => (++tries === 1 ? given : FAILED);
    passTime();
    await until("the delivery is attempted", () => attemptCount === 2);
    const next_at = new Date().toISOString();
    await database.commit((queries) => putDelivery(queries, { ...before, attempts: 0, next_at }));
    resolve();
    await until("the delivery is retried", () => tries === 2 && aside().attempts > 0);
    expect(aside()).toMatchObject({ state: "waiting", attempts: 1 });
  });

  test("for the first time is retried immediately", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    holding = promise;
    let tries = 0;
    answer = () => (++tries === 1 ? FAILED : OK);
    open();
    await happen(0, 1);
    await until("the delivery is attempted", () => attemptCount === 1);
    const { audit_id, seq, event: type, at: event_at } = chains().at(ORG as OrgId, 1) as AuditRecord;
    const row = { webhook_id: ID, delivery_id: audit_id, seq, type, event_at, state: "waiting", attempts: 0 } as const;
    const next_at = new Date().toISOString();
    await database.commit((queries) =>
      putDelivery(queries, { ...row, last_attempt_at: null, next_at, status: null, error: null }),
    );
    resolve();
    await until("the event is delivered", () => taken.length === 1);
    await until("the delivery is recorded", () => aside().state === "delivered");
    expect(aside().attempts).toBe(1);
  });
});

describe("random failures and crashes", () => {
  test.each([1, 2, 3, 4, 5, 6])("loses no event, seed %s", { timeout: 30_000 }, async (seed) => {
    const chance = new Chance(seed);
    const random = () => chance.next();
    answer = () => (random() < 0.3 ? FAILED : OK);
    let happened = 0;
    open();
    for (let step = 0; step < 30; step++) {
      const count = Math.floor(random() * 10);
      await happen(happened, count);
      happened += count;
      if (random() < 0.4) passTime();
      if (random() < 0.3) {
        // The next lane starts from the current row; a last write of the old one comes before that, or never.
        const before = progress();
        await lane?.close();
        if (random() < 0.5)
          connection.execute(`UPDATE webhook_progress SET seq = ${before.seq} WHERE webhook_id = '${ID}'`);
        open();
      }
    }
    answer = () => OK;
    await until("all events are delivered", () => {
      passTime();
      return new Set(taken).size === happened;
    });
    expect([...new Set(taken)].sort((a, b) => Number(a) - Number(b))).toEqual(numbers(0, happened));
    expect(broken).toEqual([]);
  });
});
