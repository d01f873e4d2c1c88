/** Group commit: many writes share one commit, each succeeds or fails alone, and a confirmed write is on the disk. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { nextTurn } from "../../../daemon/core/concurrency/next-turn.ts";
import { loopTime, type OwnerName } from "../../../daemon/core/loop/index.ts";
import { ServiceError } from "../../../daemon/core/service-error.ts";
import { type Connection, openConnection, type Queries } from "../../../daemon/db/client.ts";
import { type LocalDatabase, makeDatabase, violatesUnique } from "../../../daemon/db/transact.ts";
import { threadTime } from "../../../daemon/host/thread-time.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

let directory: string;
let connection: Connection;
let database: LocalDatabase;
let statements: string[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-db-"));
  connection = openConnection(join(directory, "test.db"));
  connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT UNIQUE) STRICT");
  statements = [];
  const seen: Connection = {
    ...connection,
    step: (statement) => {
      statements.push(statement);
      connection.step(statement);
    },
  };
  database = makeDatabase(seen);
});
afterEach(async () => {
  await database.close();
  rmSync(directory, { recursive: true });
});

const insert =
  (n: number, text = `text ${n}`) =>
  (queries: Queries) => {
    queries.run(sql`INSERT INTO t VALUES (${n}, ${text})`);
    return n;
  };
const numbers = (from: Queries = database.queries) =>
  from.all<{ n: number }>(sql`SELECT n FROM t ORDER BY n`).map(({ n }) => n);
const commits = () => statements.filter((statement) => statement === "COMMIT").length;

describe("a snapshot", () => {
  test("contains all writes before its call and no later ones", async () => {
    const written = database.commit(insert(1));
    const seen = await database.snapshot(async (queries) => {
      const before = numbers(queries);
      await database.commit(insert(2));
      return [before, numbers(queries), numbers()];
    });
    await written;
    expect(seen).toEqual([[1], [1], [1, 2]]);
    expect(await database.snapshot(async (queries) => numbers(queries))).toEqual([1, 2]);
  });

  test("cannot write, and ends with the failure of its reader", async () => {
    await expect(database.snapshot(async (queries) => insert(1)(queries))).rejects.toThrow("INSERT INTO t");
    await database.commit(insert(1));
    // The log can be written into the file as a whole: no reader has an earlier state.
    const [state] = connection.queries.all<{ busy: number }>(sql`PRAGMA wal_checkpoint(TRUNCATE)`);
    expect(state?.busy).toBe(0);
  });
});

describe("writes of one turn", () => {
  test("share one commit, and each returns its own value", async () => {
    // The time of its writes is not over, however long they take here.
    const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now());
    const values = await Promise.all(Array.from({ length: 10 }, (_, n) => database.commit(insert(n))));
    clock.mockRestore();
    expect(values).toEqual(Array.from({ length: 10 }, (_, n) => n));
    expect(numbers()).toEqual(values);
    expect(commits()).toBe(1);
  });

  test("continue in several turns if their callbacks compute for long", async () => {
    const compute = () => {
      const until = threadTime() + 2;
      while (threadTime() < until);
    };
    const longest = await longestTurn(() =>
      Promise.all(Array.from({ length: 50 }, (_, n) => database.commit(insert(n)).then(compute))),
    );
    // Those of one commit together compute for 100 ms.
    expect(longest).toBeLessThan(boundOf(30));
    expect(numbers()).toHaveLength(50);
  });

  test("of over 4 ms are split into several commits, in which owners take turns and keep their order", async () => {
    const order: string[] = [];
    const slow = (owner: OwnerName, n: number) => {
      loopTime.goesOn(owner, "test");
      return database.commit((queries) => {
        const until = performance.now() + 2;
        while (performance.now() < until);
        order.push(`${owner} ${n}`);
        return insert(n)(queries);
      });
    };
    const ofMany = Array.from({ length: 60 }, (_, n) => slow("org:many", n));
    const ofFew = [slow("org:few", 100), slow("org:few", 101)];
    await Promise.all(ofFew);
    expect(order.length).toBeLessThanOrEqual(6);
    await Promise.all(ofMany);
    expect(commits()).toBeGreaterThan(20);
    expect(order.filter((each) => each.startsWith("org:many"))).toEqual(
      Array.from({ length: 60 }, (_, n) => `org:many ${n}`),
    );
  });

  test("that form a group share one commit, however long they take, and each fails alone", async () => {
    const slow = (n: number) => (queries: Queries) => {
      const until = performance.now() + 6;
      while (performance.now() < until);
      return insert(n)(queries);
    };
    const [outcomes] = await Promise.all([
      database.commitTogether([slow(1), slow(1), slow(2)], true),
      database.commit(insert(3)),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(numbers()).toEqual([1, 2, 3]);
    expect(commits()).toBe(2);
    expect(await database.commitTogether([], true)).toEqual([]);
  });

  test("that form a group fail no other write if their COMMIT fails, and take turns with others", async () => {
    connection.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)");
    connection.execute("CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)");
    const orphan = (queries: Queries) => void queries.run(sql`INSERT INTO children VALUES (7)`);
    const [before, [together], after] = await Promise.all([
      database.commit(insert(1)),
      database.commitTogether([orphan], true),
      database.commit(insert(2)),
    ]);
    expect([before, after]).toEqual([1, 2]);
    expect(together).toMatchObject({ status: "rejected", reason: { message: expect.stringContaining("FOREIGN KEY") } });
    expect(numbers()).toEqual([1, 2]);
    const order: string[] = [];
    const tracked = (name: string, written: Promise<unknown>) => written.then(() => void order.push(name));
    await Promise.all([
      ...["a", "b"].map((name) => tracked(name, database.commitTogether([insert(3)], true))),
      tracked("other", database.commit(insert(4))),
    ]);
    expect(order).toEqual(["a", "other", "b"]);
  });

  test("all fail if BEGIN fails", async () => {
    const begin = vi.spyOn(connection, "step").mockImplementationOnce(() => {
      throw new Error("disk I/O error");
    });
    const outcomes = await Promise.allSettled(Array.from({ length: 3 }, (_, n) => database.commit(insert(n))));
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    begin.mockRestore();
    expect(await database.commit(insert(1))).toBe(1);
  });

  test("include those of the next turns, while each turn brings more", async () => {
    // Its longest wait is not over, however long the turns take here.
    const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now());
    const writes: Promise<number>[] = [];
    for (let n = 0; n < 5; n++) {
      writes.push(database.commit(insert(n)));
      await nextTurn();
    }
    await Promise.all(writes);
    clock.mockRestore();
    expect(numbers()).toEqual([0, 1, 2, 3, 4]);
    expect(commits()).toBe(1);
  });

  test("are not delayed by an endless flood", async () => {
    let isDone = false;
    const first = database.commit(insert(0)).then(() => {
      isDone = true;
    });
    const others: Promise<number>[] = [];
    for (let n = 1; !isDone; n++) {
      others.push(database.commit(insert(n)));
      await nextTurn();
    }
    await first;
    expect(commits()).toBeGreaterThan(0);
    await Promise.all(others);
    expect(numbers()).toHaveLength(others.length + 1);
  });

  test("see earlier writes", async () => {
    const [, seen] = await Promise.all([database.commit(insert(1)), database.commit((queries) => numbers(queries))]);
    expect(seen).toEqual([1]);
  });

  test("fail alone: neither earlier nor later ones are lost", async () => {
    const half = (n: number) => (queries: Queries) => {
      insert(n)(queries);
      throw new Error(`${n} thinks better of it`);
    };
    const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now());
    const outcomes = await Promise.allSettled([
      database.commit(insert(1)),
      database.commit(half(2)),
      database.commit(insert(3)),
      database.commit(insert(1)),
      database.commit(insert(4, "text 3")),
      database.commit(insert(5)),
    ]);
    clock.mockRestore();
    expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual([true, false, true, false, false, true]);
    expect(numbers()).toEqual([1, 3, 5]);
    expect(commits()).toBe(1);
  });

  test("that violate a unique column name it", async () => {
    await database.commit(insert(1));
    const byKey = await database.commit(insert(1)).catch((error: unknown) => error);
    const byText = await database.commit(insert(2, "text 1")).catch((error: unknown) => error);
    expect([violatesUnique(byKey, "t.n"), violatesUnique(byKey, "t.text")]).toEqual([true, false]);
    expect([violatesUnique(byText, "t.n"), violatesUnique(byText, "t.text")]).toEqual([false, true]);
    expect(violatesUnique(new Error("t.n"), "t.n")).toBe(false);
    expect(violatesUnique(null, "t.n")).toBe(false);
  });
});

test("no write is confirmed before it is on the disk: another connection sees it only then", async () => {
  // 2 is FULL: every commit is synced. test/api/storage/lost-power.test.ts shows that a loss of power takes none.
  expect([connection.pragma("synchronous"), connection.pragma("journal_mode")]).toEqual([2, "wal"]);
  const other = openConnection(join(directory, "test.db"));
  const writing = database.commit(insert(1));
  expect(numbers(other.queries)).toEqual([]);
  await writing;
  expect(numbers(other.queries)).toEqual([1]);
  other.close();
});

test("a write in the continuation of a write goes into the next commit", async () => {
  await database.commit(insert(1)).then(() => database.commit(insert(2)));
  expect(numbers()).toEqual([1, 2]);
  expect(commits()).toBe(2);
});

test("close waits for pending writes, and for those that they start", async () => {
  const file = join(directory, "test.db");
  const writes = [database.commit(insert(1)), database.commit(insert(2)).then(() => database.commit(insert(3)))];
  await database.close();
  await Promise.all(writes);
  const again = openConnection(file);
  expect(numbers(again.queries)).toEqual([1, 2, 3]);
  again.close();
  connection = openConnection(file);
  database = makeDatabase(connection);
});

describe("a full disk", () => {
  test("rejects a turn's writes with disk_full, stores none of them, and accepts others once there is space", async () => {
    await database.commit(insert(0));
    connection.execute(`PRAGMA max_page_count = ${Number(connection.pragma("page_count")) + 4}`);
    const outcomes = await Promise.allSettled([
      database.commit(insert(1)),
      database.commit(insert(2, "x".repeat(100_000))),
      database.commit(insert(3)),
    ]);
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused.length).toBeGreaterThan(0);
    for (const { reason } of refused) {
      expect(reason).toBeInstanceOf(ServiceError);
      expect(reason).toMatchObject({ code: "disk_full" });
    }
    const kept = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    expect(numbers()).toEqual([0, ...kept]);

    expect(await database.commit(insert(4))).toBe(4);
    connection.execute("PRAGMA max_page_count = 100000");
    expect(await database.commit(insert(2, "x".repeat(100_000)))).toBe(2);
    expect(connection.pragma("integrity_check")).toBe("ok");
  });
});

test("retries vital writes whole as long as space can be freed, and others not", async () => {
  const requests: boolean[] = [];
  const again = makeDatabase(connection, (vital) => {
    requests.push(vital);
    const pages = Number(connection.pragma("max_page_count"));
    if (vital) connection.execute(`PRAGMA max_page_count = ${pages + 8}`);
    return vital;
  });
  await again.commit(insert(0));
  connection.execute(`PRAGMA max_page_count = ${connection.pragma("page_count")}`);
  const lesser = again.commit(insert(1, "x".repeat(100_000)), false);
  await expect(lesser).rejects.toMatchObject({ code: "disk_full" });
  expect(requests).toEqual([false]);
  const both = [again.commit(insert(2), false), again.commit(insert(3, "y".repeat(100_000)))];
  expect(await Promise.all(both)).toEqual([2, 3]);
  expect(requests.length).toBeGreaterThan(2);
  expect(numbers()).toEqual([0, 2, 3]);
  database = again;
});

test("waits while another process writes to the database", async () => {
  const other = openConnection(join(directory, "test.db"));
  other.execute("BEGIN IMMEDIATE");
  other.execute("INSERT INTO t VALUES (10, 'other')");
  const writing = database.commit(insert(11));
  // The wait for the lock blocks this thread, so the other connection releases it first.
  other.execute("COMMIT");
  other.close();
  expect(await writing).toBe(11);
  expect(numbers()).toEqual([10, 11]);
});

test("with a separate flush, waits for another process in later turns, and others proceed", async () => {
  const other = openConnection(join(directory, "test.db"));
  const daemon = makeDatabase(connection, () => false, { sync: () => null, close: () => {} });
  other.execute("BEGIN IMMEDIATE");
  let turns = 0;
  const ticking = setInterval(() => turns++, 5);
  const writing = daemon.commit(insert(11));
  await Bun.sleep(200);
  clearInterval(ticking);
  expect(turns).toBeGreaterThan(5);
  expect(numbers()).toEqual([]);
  other.execute("COMMIT");
  other.close();
  expect(await writing).toBe(11);
});

describe("a deferred write", () => {
  test("is part of the next commit, and runs first", async () => {
    const early = database.commitWithin(60_000, (queries) => numbers(queries).length + insert(1)(queries));
    const seen = await database.commit((queries) => numbers(queries));
    expect([await early, seen, commits()]).toEqual([1, [1], 1]);
  });

  test("is committed on its own after a delay, and on close at the latest", async () => {
    expect(await database.commitWithin(1, insert(1))).toBe(1);
    const last = database.commitWithin(60_000, insert(2));
    await database.close();
    expect(await last).toBe(2);
  });
});

describe("a database with separate flushes of its log", () => {
  /** Flushes that are answered by the test. */
  function flushed() {
    const asked: PromiseWithResolvers<void>[] = [];
    const urgent: (boolean | undefined)[] = [];
    const sync = (isUrgent?: boolean) => {
      const flush = Promise.withResolvers<void>();
      asked.push(flush);
      urgent.push(isUrgent);
      return flush.promise;
    };
    return { asked, urgent, log: { sync, close: () => {} } };
  }
  const turns = async (count: number) => {
    for (let n = 0; n < count; n++) await new Promise(setImmediate);
  };

  test("confirms a commit once it is flushed, and the writes since then form the next one", async () => {
    const { asked, log } = flushed();
    const other = makeDatabase(connection, () => false, log);
    expect(connection.pragma("synchronous")).toBe(1);
    const confirmed: number[] = [];
    let listened = 0;
    other.onCommit(() => listened++);
    const one = other.commit(insert(1)).then((n) => confirmed.push(n));
    await turns(3);
    expect([asked.length, confirmed, listened]).toEqual([1, [], 0]);
    expect(other.unflushed("host", false)).not.toBeNull();
    // The event loop is not blocked, and neither are readers.
    expect(numbers(other.queries)).toEqual([1]);
    const more = [2, 3, 4].map((n) => other.commit(insert(n)).then((value) => confirmed.push(value)));
    await turns(3);
    expect([asked.length, confirmed]).toEqual([1, []]);
    asked[0]?.resolve();
    await one;
    expect([confirmed, listened]).toEqual([[1], 1]);
    await turns(3);
    expect([asked.length, confirmed]).toEqual([2, [1]]);
    asked[1]?.resolve();
    await Promise.all(more);
    expect(confirmed).toEqual([1, 2, 3, 4]);
    expect(other.unflushed("host", true)).toBeNull();
  });

  test("records of reads are flushed without urgency, and count as unflushed for reads of records only", async () => {
    const { asked, urgent, log } = flushed();
    const other = makeDatabase(connection, () => false, log);
    const unflushed = (isOfRecords: boolean) => other.unflushed("org:a", isOfRecords) !== null;
    const recorded = other.commitWithin(60_000, insert(1), "reads");
    // Does not wait for the minute.
    const written = other.commitWithin(0, () => {}, "reads");
    await turns(3);
    expect([numbers(other.queries), urgent]).toEqual([[1], [false]]);
    expect([unflushed(true), unflushed(false)]).toEqual([true, false]);
    asked[0]?.resolve();
    await Promise.all([recorded, written]);
    // With a change they are like it.
    const more = [other.commitWithin(60_000, insert(2), "reads"), other.commit(insert(3))];
    await turns(3);
    expect(urgent).toEqual([false, true]);
    expect([unflushed(true), unflushed(false)]).toEqual([true, true]);
    asked[1]?.resolve();
    await Promise.all(more);
    expect([unflushed(true), unflushed(false)]).toEqual([false, false]);
  });

  test.each([
    { about: "org:a", waiting: ["org:a", "org:", "host"] },
    { about: "host", waiting: ["org:a", "org:b", "org:", "host"] },
    { about: "org:", waiting: ["org:a", "org:b", "org:", "host"] },
    { about: undefined, waiting: ["org:a", "org:b", "org:", "host"] },
    { about: "reads", waiting: [] },
  ] as const)("a change of $about is waited for by $waiting", async ({ about, waiting }) => {
    const { asked, log } = flushed();
    const other = makeDatabase(connection, () => false, log);
    const written = other.commit(insert(1), true, about);
    await turns(3);
    const owners = ["org:a", "org:b", "org:", "host"] as const;
    expect(owners.filter((owner) => other.unflushed(owner, false) !== null)).toEqual([...waiting]);
    asked[0]?.resolve();
    await written;
  });

  test("a commit of several organizations is waited for by each of them", async () => {
    const { asked, log } = flushed();
    const other = makeDatabase(connection, () => false, log);
    const written = [other.commit(insert(1), true, "org:a"), other.commit(insert(2), true, "org:b")];
    await turns(3);
    const owners = ["org:a", "org:b", "org:c"] as const;
    expect(owners.filter((owner) => other.unflushed(owner, false) !== null)).toEqual(["org:a", "org:b"]);
    asked[0]?.resolve();
    await Promise.all(written);
  });

  test("never confirms a commit that is not flushed, and accepts no other", async () => {
    const { asked, log } = flushed();
    const other = makeDatabase(connection, () => false, log);
    const outcomes: unknown[] = [];
    for (const n of [1, 2]) {
      const note = (how: unknown) => void outcomes.push(how);
      other.commit(insert(n)).then(note, note);
      await turns(3);
    }
    expect([asked.length, outcomes, numbers(other.queries)]).toEqual([1, [], [1]]);
  });

  test("ends the process if the disk fails, and settles no write", async () => {
    const { log } = flushed();
    const lost: string[] = [];
    const failing: Connection = {
      ...connection,
      step: (statement) => {
        if (statement === "COMMIT") throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_WRITE" });
        connection.step(statement);
      },
    };
    const other = makeDatabase(
      failing,
      () => false,
      log,
      null,
      ({ message }) => lost.push(message),
    );
    const settled: unknown[] = [];
    const note = (how: unknown) => void settled.push(how);
    other.commit(insert(1)).then(note, note);
    await turns(3);
    other.commit(insert(2)).then(note, note);
    await turns(3);
    expect([lost, settled]).toEqual([[expect.stringMatching(/: disk I\/O error$/)], []]);
  });

  test("is closed once all commits are flushed", async () => {
    const { asked, log } = flushed();
    let isClosed = false;
    const other = makeDatabase({ ...connection, close: () => {} }, () => false, {
      ...log,
      close: () => (isClosed = true),
    });
    const one = other.commit(insert(1));
    const closing = other.close();
    await turns(3);
    expect(isClosed).toBe(false);
    asked[0]?.resolve();
    await Promise.all([one, closing]);
    expect(isClosed).toBe(true);
  });
});
