/**
 * Values counted in memory within transactions. If a write is refused, if the whole commit fails, and if the commit runs twice because the
 * disk was full at first, each value is as if only the stored changes had ever run.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Connection, openConnection, type Queries } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";
import { TransactionMap } from "../../../daemon/db/transaction-map.ts";
import { InboxCapacity } from "../../../daemon/domain/fabric/inbox/inbox-capacity.ts";
import { Sequence } from "../../../daemon/domain/fabric/sequence.ts";
import { Meter } from "../../../daemon/domain/orgs/usage/meter.ts";
import { makeIdempotency, packSmall } from "../../../daemon/edge/pipeline/idempotency-answers.ts";
import { MAX_INBOX } from "../../../shared/api/fabric.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import { watchStatements } from "../../harness/event-loop/watched-statements.ts";

const ROOM = "rom_1" as RoomUid;
let connection: Connection;
let database: Database;
/** Failures of the next commits, at their end. */
let failures: Error[];
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection, () => true);
  failures = [];
  database.beforeCommit(() => {
    const failure = failures.shift();
    if (failure) throw failure;
  });
});
afterEach(() => database.close());

const diskFull = () => Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });

/** Runs the work once as a write that is refused, once in a commit that fails, and once in a commit that runs twice. */
async function inEveryWay(work: (queries: Queries) => void): Promise<void> {
  let runs = 0;
  const countedWork = (queries: Queries) => {
    runs++;
    work(queries);
  };
  const refused = database.commit((queries) => {
    countedWork(queries);
    throw new Error("refused");
  });
  await expect(refused).rejects.toThrow("refused");
  failures = [new Error("not written")];
  await expect(database.commit(countedWork)).rejects.toThrow("not written");
  failures = [diskFull(), diskFull()];
  await database.commit(countedWork);
  expect(runs).toBe(5);
}

describe("a transactional map", () => {
  test("has only stored changes, also for set, replaced and deleted keys", async () => {
    const map = new TransactionMap<string, number>(database);
    await database.commit(() => map.set("stays", 1));
    const refused = database.commit(() => {
      map.set("stays", 2);
      map.delete("stays");
      map.set("new", 1);
      map.set("new", 2);
      throw new Error("refused");
    });
    const kept = database.commit(() => map.set("kept", (map.get("stays") ?? 0) + (map.get("new") ?? 0)));
    await expect(refused).rejects.toThrow("refused");
    await kept;
    expect(["stays", "new", "kept"].map((key) => map.get(key))).toEqual([1, undefined, 1]);
    expect(map.size).toBe(2);
  });

  test("counts a transaction once that ran twice", async () => {
    const map = new TransactionMap<string, number>(database);
    await inEveryWay(() => map.set("n", (map.get("n") ?? 0) + 1));
    expect(map.get("n")).toBe(1);
  });

  test("keeps changes outside of a transaction, whatever the outcome of the next one", async () => {
    const map = new TransactionMap<string, number>(database);
    map.set("n", 7);
    failures = [new Error("not written")];
    await expect(database.commit(() => map.delete("n"))).rejects.toThrow("not written");
    expect(map.get("n")).toBe(7);
  });
});

test("the sequence of a room's messages has no gap", async () => {
  const order = new Sequence(database);
  const seqs: number[] = [];
  await inEveryWay((queries) => void seqs.push(order.next(queries, ROOM)));
  expect(seqs).toEqual([1, 1, 1, 1, 1]);
  expect(await database.commit((queries) => order.next(queries, ROOM))).toBe(2);
});

test("an inbox counts its sent messages: once in the database, until it may be full", async () => {
  using counts = watchStatements(/count\(\*\).*\bdeliveries\b/i);
  const space = new InboxCapacity(database);
  for (let round = 0; round < 3; round++) {
    const refused = database.commit((queries) => {
      for (let sent = 0; sent < MAX_INBOX / 2; sent++) space.take(queries, ROOM, ["a"]);
      throw new Error("refused");
    });
    await expect(refused).rejects.toThrow("refused");
  }
  const before = counts.runs.length;
  await inEveryWay((queries) => void space.take(queries, ROOM, ["b"]));
  await database.commit((queries) => {
    for (let sent = 1; sent < MAX_INBOX; sent++) expect(space.take(queries, ROOM, ["b"])).toEqual([]);
  });
  // One count in each of its own runs that was rolled back, and one in the run that was committed.
  expect(counts.runs.length - before).toBe(5);
});

test("the meter counts a message once", async () => {
  const meter = new Meter(database);
  const place = { org_id: "org_1" as OrgId, room_uid: ROOM, agent_id: "a", key_id: "kid_1" };
  await inEveryWay(() => meter.count(place, { messages: 1 }));
  const days = meter.read(place.org_id, { from: "0000-01-01", to: "9999-12-31" }, "agent");
  expect(days.get("a")?.messages).toBe(1);
});

test("a day has as many rows as were written: the last that fits is distinguished, the next is not", async () => {
  const meter = new Meter(database, undefined, 2);
  const place = (agent_id: string) => ({ org_id: "org_1" as OrgId, room_uid: ROOM, agent_id, key_id: "kid_1" });
  await inEveryWay(() => meter.count(place("a"), { messages: 1 }));
  for (const agent of ["b", "c"]) await database.commit(() => meter.count(place(agent), { messages: 1 }));
  const days = meter.read("org_1" as OrgId, { from: "0000-01-01", to: "9999-12-31" }, "agent");
  expect([...days].map(([agent, { messages }]) => [agent, messages])).toEqual([
    ["", 1],
    ["a", 1],
    ["b", 1],
  ]);
});

test("the response store counts the stored responses only", async () => {
  const reply = packSmall({ status: 200, body: { text: "x".repeat(1000) }, location: null });
  const most = 4 * reply.kept_bytes;
  const idempotency = makeIdempotency(database, most, most);
  const callOf = (idempotency_key: string) => ({
    ...{ org_id: "org_1", key_id: "kid_1", method: "POST", path: "/", body_sha256: "same" },
    idempotency_key,
  });
  const keys = ["first", "second", "third", "fourth"];
  for (const key of keys) await idempotency.begin(callOf(key));
  await database.commit((queries) => idempotency.keep(queries, callOf("first"), reply));
  await inEveryWay((queries) => idempotency.keep(queries, callOf("second"), reply));
  for (const key of ["third", "fourth"]) {
    await database.commit((queries) => idempotency.keep(queries, callOf(key), reply));
  }
  // Four fit exactly: one counted twice would have driven out the first.
  for (const key of keys) expect((await idempotency.begin(callOf(key))).reply?.status).toBe(200);
});
