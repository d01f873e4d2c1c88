/**
 * Removal of messages that take too much space: in small commits, none of them empty, and without messages that an agent may still read.
 */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { at } from "../../../../../daemon/core/clock.ts";
import type { Log } from "../../../../../daemon/core/log.ts";
import { openConnection } from "../../../../../daemon/db/client.ts";
import { migrate } from "../../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { Budget, bytesOf } from "../../../../../daemon/domain/fabric/retention/budget.ts";
import { History } from "../../../../../daemon/domain/fabric/retention/removal-schedule.ts";
import { insertDelivery, insertMessage } from "../../../../../daemon/domain/fabric/store.ts";
import type { DeliveryRow, MessageRow } from "../../../../../daemon/domain/fabric/table.ts";
import type { OrgId, RoomUid } from "../../../../../shared/ids.ts";

const MINUTE = 60_000;
const HOLDER = { org_id: "org_1" as OrgId, room_uid: "rom_1" as RoomUid };
let onSwept = () => {};
const LOG = {
  error: (text: string, more: object) => expect.fail(`${text} ${JSON.stringify(more)}`),
  debug: () => onSwept(),
};
let database: Database;
const histories: History[] = [];
beforeEach(() => {
  const connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
});
afterEach(async () => {
  for (const history of histories.splice(0)) history.stop();
  await database.close();
});

type Kept = Partial<MessageRow> & { state?: DeliveryRow["state"] };

function rowOf(seq: number, more: Partial<MessageRow>): MessageRow {
  return {
    ...{ ...HOLDER, seq, message_id: `m${seq}`, source: "a", destination: null, destinations: null, topic: null },
    ...{ kind: "event", payload: "1", payload_b64: null, size_bytes: 1, headers: {}, reply_to: null },
    ...{ ack_required: false, recipients: [], fingerprint: "", created_at: at(Date.now()), expires_at: null },
    ...more,
  };
}

/** Keeps these messages, then one more, and makes of them the whole budget. */
async function full(
  messages: readonly Kept[],
  among: Database = database,
): Promise<{ history: History; budget: Budget }> {
  const rows = [...messages, {}].map(({ state = "read", ...more }: Kept, n) => ({ state, row: rowOf(n + 1, more) }));
  const budget = new Budget(
    database,
    rows.reduce((sum, { row }) => sum + bytesOf(row), 0),
  );
  await database.commit((queries) => {
    for (const { row, state } of rows) {
      insertMessage(queries, row);
      budget.take(queries, HOLDER, bytesOf(row));
      const { room_uid, seq } = row;
      const rest = { state, attempts: 0, ack_required: false, due_at_ms: null, expires_at_ms: null, awaited: false };
      for (const agent_id of row.recipients) insertDelivery(queries, { room_uid, agent_id, seq, ...rest });
    }
  });
  const history = new History(among, budget, LOG as unknown as Log);
  histories.push(history);
  return { history, budget };
}

const seqs = () =>
  database.queries.all<{ seq: number }>(sql`SELECT seq FROM messages ORDER BY seq`).map((row) => row.seq);
const deliveries = () =>
  database.queries.all<{ count: number }>(sql`SELECT count(*) AS count FROM deliveries`)[0]?.count ?? 0;
const agents = (count: number) => Array.from({ length: count }, (_, n) => `agent-${n}`);
const patient = new AbortController().signal;

/** Resolves when all messages were checked, or enough were removed. */
async function sweep(history: History): Promise<void> {
  const over = Promise.withResolvers<void>();
  onSwept = over.resolve;
  history.grown(HOLDER.org_id);
  await over.promise;
}

describe("a commit", () => {
  test.each([
    { messages: 60, recipients: 500, most: 2499 },
    { messages: 4, recipients: 10_000, most: 2000 },
  ])("removes a part of $messages messages to $recipients each", async ({ messages, recipients, most }) => {
    const { history } = await full(Array.from({ length: messages }, () => ({ recipients: agents(recipients) })));
    const left = [deliveries()];
    database.onCommit(() => left.push(deliveries()));
    await sweep(history);
    const removed = left.slice(1).map((count, n) => (left[n] ?? 0) - count);
    expect(Math.max(...removed)).toBeGreaterThan(0);
    expect(Math.max(...removed)).toBeLessThanOrEqual(most);
    // Half of all is enough, and no message is left without its deliveries.
    expect(deliveries()).toBe((seqs().length - 1) * recipients);
    expect(seqs().length).toBeLessThanOrEqual(messages / 2 + 1);
  });

  test("is made only if a message can be removed", async () => {
    const unread: Kept = { recipients: ["b"], state: "queued" };
    const { history, budget } = await full(Array.from({ length: 1000 }, () => unread));
    let commits = 0;
    database.onCommit(() => commits++);
    await history.makeSpace(HOLDER.org_id, () => patient);
    expect([commits, seqs().length]).toEqual([0, 1001]);
    expect(budget.taken(database.queries, HOLDER.org_id)).toBe(budget.most);
  });

  test("counts no message that was removed since it was found", async () => {
    const others: Database = {
      ...database,
      commit: async (work, vital) => {
        await database.commit((queries) => void queries.run(sql`DELETE FROM messages`));
        return database.commit(work, vital);
      },
    };
    const { history, budget } = await full(
      Array.from({ length: 10 }, () => ({})),
      others,
    );
    await sweep(history);
    expect(seqs()).toEqual([]);
    expect(budget.taken(database.queries, HOLDER.org_id)).toBe(budget.most);
  });
});

describe("no caller waits for space", () => {
  // A disk that does not answer.
  const stuck = () => ({ ...database, commit: () => new Promise<never>(() => {}) });

  test("for more than about a second", async () => {
    const { history } = await full([{}, {}], stuck());
    const startedAt = performance.now();
    await history.makeSpace(HOLDER.org_id, () => patient);
    expect(performance.now() - startedAt).toBeGreaterThan(900);
  }, 10_000);

  test("once the caller has disconnected", async () => {
    const { history } = await full([{}, {}], stuck());
    const controller = new AbortController();
    const waiting = history.makeSpace(HOLDER.org_id, () => controller.signal);
    controller.abort();
    const timer = new Promise((done) => setTimeout(done, 500, "late"));
    expect(await Promise.race([waiting, timer])).toBe(undefined);
  });
});

describe("of messages in no inbox", () => {
  const named = { fingerprint: "f" };
  const toOne = { recipients: ["b"] };
  const reply: Kept = { ...toOne, kind: "response", reply_to: "m" };
  const request: Kept = { ...toOne, kind: "request" };
  test.each<[string, Kept, number]>([
    ["a message without recipients", {}, 0],
    ["a message that was read", toOne, 0],
    ["a message that was never acked", { ...toOne, state: "undeliverable" }, 0],
    ["a request without recipients", { kind: "request" }, 0],
    ["a response to no request", { ...toOne, kind: "response" }, 0],
    ["a message without recipients, named by its sender", named, 5],
    ["a message named by its sender and read by all", { ...toOne, ...named }, 5],
    ["a reply", reply, 5],
    ["a request", request, 5],
    ["a request that its sender named", { ...request, ...named }, 10],
  ])("$0 is removed after $2 minutes", async (_, message, minutes) => {
    const aged = (ms: number) => ({ ...message, created_at: at(Date.now() - ms) });
    const { history } = await full([aged(minutes * MINUTE), aged(minutes * MINUTE - MINUTE / 2)]);
    await sweep(history);
    // Messages without a retention time are removed whatever the clock shows.
    expect(seqs()).toEqual(minutes === 0 ? [3] : [2, 3]);
  });
});
