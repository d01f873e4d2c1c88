import { eq, sql } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readAddresses } from "../../../daemon/cluster/address.ts";
import { Connections } from "../../../daemon/cluster/connections.ts";
import { Copy } from "../../../daemon/cluster/copy.ts";
import { forgetCalls, type NamedCall } from "../../../daemon/cluster/done-calls.ts";
import { deletePlacement, insertPlacement, movePlacement, putHost } from "../../../daemon/cluster/placements.ts";
import { lackingRows } from "../../../daemon/cluster/put-again.ts";
import { pointOf, seenOf } from "../../../daemon/cluster/replica.ts";
import { forgetOld, whoFreed } from "../../../daemon/cluster/schema.ts";
import { hosts, orgUse, placements } from "../../../daemon/cluster/table.ts";
import { WholeComparison } from "../../../daemon/cluster/whole.ts";
import type { Queries } from "../../../daemon/db/client.ts";
import { locally } from "../../../daemon/db/dry-run.ts";
import { whole } from "../../../daemon/db/shared-rows.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import { until } from "../../harness/guests.ts";
import { Postgres } from "../../harness/hosts/postgres.ts";
import { newDirectory, newPeer, type Peer, within } from "./peers.ts";

let server: Postgres;

beforeAll(async () => {
  server = await Postgres.start({ settings: { fsync: "off" } });
}, 60_000);

afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

beforeEach(() => newDirectory(server));

const peer = (host_id: string, flush = (): Promise<void> | null => null) =>
  newPeer(server, host_id, { tables: ["hosts", "org_use", "placements", "api_keys"].map(whole), flush });

const add = (org_id: string, host_id: string, rooms: number) => (queries: Queries) => {
  const row = { org_id, host_id, rooms, sandboxes: 0, memory_mib: 0, disk_gib: 0.5, used_micro: 0 };
  queries
    .insert(orgUse)
    .values(row as typeof orgUse.$inferInsert)
    .run();
  return rooms;
};
const all = ({ queries }: Peer) => queries.select().from(orgUse).all();

describe("changes of shared rows", () => {
  test("are valid for all hosts: each sees the other's changes before its own", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    expect(await a.rounds.change(add("one", "a", 1), true)).toBe(1);
    expect(await b.rounds.change((queries) => queries.select().from(orgUse).all().length, true)).toBe(1);
    await expect(b.rounds.change(add("one", "a", 2), true)).rejects.toThrow(/Failed|UNIQUE/);
    const seven = (queries: Queries) =>
      queries
        .update(orgUse)
        .set({ rooms: 7 })
        .where(eq(orgUse.org_id, "one" as never))
        .run();
    await b.rounds.change((queries) => void seven(queries), true);
    await a.rounds.pull();
    expect(all(a)).toMatchObject([{ org_id: "one", rooms: 7, disk_gib: 0.5, used_micro: 0 }]);
    expect(all(b)).toEqual(all(a));
    await Promise.all([a.close(), b.close()]);
  });

  test("of two hosts that increment the same row are never lost, and waiting ones share rounds", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    await a.rounds.change(add("one", "a", 0), true);
    const count = (queries: Queries) => void queries.run(sql`UPDATE org_use SET rooms = rooms + 1`);
    await Promise.all([a, b].flatMap(({ rounds }) => Array.from({ length: 200 }, () => rounds.change(count, true))));
    await Promise.all([a.rounds.pull(), b.rounds.pull()]);
    expect([all(a)[0]?.rooms, all(b)[0]?.rooms]).toEqual([400, 400]);
    expect(Number(await server.sql("SELECT seq FROM roomd.cluster"))).toBeLessThan(100);
    await Promise.all([a.close(), b.close()]);
  });

  test("that take long are committed in several rounds, in order, and none is lost", async () => {
    const a = await peer("a");
    const slow = (org_id: string) => (queries: Queries) => {
      const until = performance.now() + 3;
      while (performance.now() < until);
      return add(org_id, "a", queries.select().from(orgUse).all().length)(queries);
    };
    const counts = await Promise.all(Array.from({ length: 20 }, (_, n) => a.rounds.change(slow(`org ${n}`), true)));
    expect(counts).toEqual(Array.from({ length: 20 }, (_, n) => n));
    expect(all(a)).toHaveLength(20);
    // Of 8 ms each, and one change more.
    expect(Number(await server.sql("SELECT seq FROM roomd.cluster"))).toBeGreaterThanOrEqual(5);
    await a.close();
  });

  test("of a host with a slow disk delay no other host's, and are tried on the latest rows", async () => {
    let flushing: Promise<void> | null = null;
    const [a, b] = [await peer("a"), await peer("b", () => flushing)];
    await a.rounds.change(add("one", "a", 1), true);
    await b.rounds.pull();
    await a.rounds.change(add("two", "a", 2), true);
    const disk = Promise.withResolvers<void>();
    flushing = disk.promise;
    const slow = b.rounds.change((queries) => {
      const sum = queries
        .select()
        .from(orgUse)
        .all()
        .reduce((total, { rooms }) => total + rooms, 0);
      return add("sum", "b", sum)(queries);
    }, true);
    await until(
      "the directory has the change",
      async () => (await server.sql("SELECT seq FROM roomd.cluster")) === "3",
    );
    await a.rounds.change(add("three", "a", 3), true);
    // Only the pull that applied the first row was flushed.
    expect(b.news).toBe(1);
    flushing = null;
    disk.resolve();
    expect(await slow).toBe(3);
    await b.rounds.pull();
    expect(
      all(b)
        .map(({ org_id }) => org_id)
        .sort(),
    ).toEqual(["one", "sum", "three", "two"]);
    expect(b.news).toBe(3);
    await Promise.all([a.close(), b.close()]);
  });

  test.each([
    ["are retried on a copy that is brought up to date", { times: 5, roundsOf: (b: Peer) => b.rounds }],
    [
      "are tried on a whole page after their deadline",
      { times: Number.POSITIVE_INFINITY, roundsOf: (b: Peer) => b.impatient(0) },
    ],
  ] as const)("of a host that always finds many rows of another %s", async (_, { times, roundsOf }) => {
    const a = await peer("a");
    let added = 0;
    const before = async (text: string) => {
      if (!text.includes("FOR UPDATE") || added === times) return;
      const prefix = `org ${++added}`;
      const many = (queries: Queries) => {
        for (let row = 0; row < 150; row++) add(`${prefix} ${row}`, "a", 1)(queries);
      };
      await a.rounds.change(many, true);
    };
    await a.rounds.change(add("first", "a", 1), true);
    const b = await newPeer(server, "b", { tables: ["org_use"].map(whole), before });
    await b.rounds.pull();
    const rows = await roundsOf(b).change((queries) => {
      add("last", "b", 1)(queries);
      return queries.select().from(orgUse).all().length;
    }, true);
    expect(added).toBe(times === 5 ? 5 : 2);
    expect(rows).toBe(2 + added * 150);
    expect(all(b)).toHaveLength(rows);
    await Promise.all([a.close(), b.close()]);
  });

  test("are refused if the disk has no space to try them on the latest rows", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    await a.rounds.change(add("first", "a", 1), true);
    await b.rounds.pull();
    const large = (queries: Queries) => {
      for (let row = 0; row < 90; row++) add(`${row} ${"x".repeat(4000)}`, "a", 1)(queries);
    };
    await a.rounds.change(large, true);
    // SQLite raises it to the current size.
    b.connection.execute("PRAGMA max_page_count = 1");
    const refused = b.rounds.change(add("last", "b", 1), true);
    await expect(refused).rejects.toMatchObject({ code: "disk_full" });
    b.connection.execute("PRAGMA max_page_count = 1000000");
    await b.rounds.change(add("last", "b", 1), true);
    expect(all(b)).toHaveLength(92);
    await Promise.all([a.close(), b.close()]);
  });

  test("run their local part once, on the requesting host", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    const done: string[] = [];
    const work = (name: string) => (queries: Queries) => {
      add(name, "a", 1)(queries);
      locally(queries, () => done.push(name));
    };
    const results = ["x", "y", "x"].map((name) => a.rounds.change(work(name), true).catch(() => "refused"));
    expect(await Promise.all(results)).toEqual([undefined, undefined, "refused"]);
    await b.rounds.pull();
    expect(done).toEqual(["x", "y"]);
    expect(all(b)).toHaveLength(2);
    await Promise.all([a.close(), b.close()]);
  });

  test("commit rows and local writes together, however long the writes take", async () => {
    const a = await peer("a");
    const before = a.commits;
    const work = (name: string) => (queries: Queries) => {
      add(name, "a", 1)(queries);
      locally(queries, () => {
        const until = performance.now() + 6;
        while (performance.now() < until);
      });
    };
    await Promise.all(["x", "y", "z"].map((name) => a.rounds.change(work(name), true)));
    expect(a.commits - before).toBe(1);
    await a.close();
  });

  test("are announced on each host once, including those that a concurrent command has fetched", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    await a.rounds.change(add("one", "a", 1), true);
    await b.rounds.pull();
    // The copy that was here before may have lacked anything.
    expect(b.news).toBe(1);
    await a.rounds.change(add("two", "a", 1), true);
    await b.beside();
    await b.rounds.pull();
    await b.rounds.pull();
    await b.rounds.change(add("three", "b", 1), true);
    await b.rounds.pull();
    expect(b.news).toBe(2);
    await Promise.all([a.close(), b.close()]);
  });

  test("are refused on a host that is no member or a copy of one", async () => {
    const a = await peer("a");
    await server.sql("UPDATE roomd.leases SET incarnation = 'another'");
    await expect(a.rounds.change(add("one", "a", 1), true)).rejects.toMatchObject({ code: "not_a_member" });
    expect(all(a)).toEqual([]);
    await a.close();
  });

  test("are refused while the database is down, and continue once it is back", async () => {
    const a = await peer("a");
    await server.stop();
    await expect(a.rounds.change(add("one", "a", 1), true)).rejects.toMatchObject({ code: "cluster_unavailable" });
    await server.begin();
    await a.rounds.change(add("one", "a", 1), true);
    expect(all(a)).toHaveLength(1);
    await a.close();
  });

  test("a directory that has lost changes is authoritative: the copy is rebuilt", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    await a.rounds.change(add("one", "a", 1), true);
    await a.rounds.change(add("two", "a", 1), true);
    await server.sql("DELETE FROM roomd.changes WHERE seq = 2");
    await server.sql("DELETE FROM roomd.rows WHERE seq = 2");
    await server.sql("UPDATE roomd.cluster SET seq = 1");
    await b.rounds.change(add("three", "b", 1), true);
    await a.rounds.pull();
    expect(all(a).map(({ org_id }) => org_id)).toEqual(["one", "three"]);
    await Promise.all([a.close(), b.close()]);
  });

  test("a row deleted while a host joins is not in its copy, even if its first daemon ends early", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    await a.rounds.change(add("one", "a", 1), true);
    const connections = new Connections({ addresses: readAddresses(server.url("tcp")) });
    const comparison = new WholeComparison(
      connections,
      new Copy(b.database, b.shared),
      pointOf(b.queries),
      pointOf(a.queries),
      false,
    );
    while (all(b).length === 0) expect(await comparison.next()).toBe(false);
    connections.close();
    await a.rounds.change((queries) => void queries.delete(orgUse).run(), true);
    await b.rounds.pull();
    expect(all(b)).toEqual([]);
    expect(pointOf(b.queries)).toEqual(pointOf(a.queries));
    await Promise.all([a.close(), b.close()]);
  });

  /** The directory loses its second change, as by a failover. */
  const loseSecond = async () => {
    await server.sql("DELETE FROM roomd.changes WHERE seq = 2");
    await server.sql("DELETE FROM roomd.rows WHERE seq = 2");
    await server.sql("UPDATE roomd.cluster SET seq = 1");
  };

  test("a comparison is void if the directory is set back to before a change of which it has read rows", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    await a.rounds.change(add("one", "a", 1), true);
    const connections = new Connections({ addresses: readAddresses(server.url("tcp")) });
    const copy = new Copy(b.database, b.shared);
    const comparison = new WholeComparison(connections, copy, pointOf(b.queries), pointOf(a.queries), false);
    await a.rounds.change(add("two", "a", 1), true);
    while (all(b).length < 2) expect(await comparison.next()).toBe(false);
    await loseSecond();
    while (!comparison.isVoid) expect(await comparison.next()).toBe(false);
    connections.close();
    await b.rounds.pull();
    expect(all(b).map(({ org_id }) => org_id)).toEqual(["one"]);
    await Promise.all([a.close(), b.close()]);
  });

  test("a comparison is void if the directory is set back to before the change that it began with", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    await a.rounds.change(add("one", "a", 1), true);
    await a.rounds.change(add("two", "a", 1), true);
    const connections = new Connections({ addresses: readAddresses(server.url("tcp")) });
    const copy = new Copy(b.database, b.shared);
    const comparison = new WholeComparison(connections, copy, pointOf(b.queries), pointOf(a.queries), false);
    await loseSecond();
    expect(await comparison.next()).toBe(false);
    expect(comparison.isVoid).toBe(true);
    connections.close();
    await Promise.all([a.close(), b.close()]);
  });

  test("lost epochs are not inserted into a directory that was set back during the comparison", async () => {
    const b = await peer("b");
    const steps = [
      // The comparison reads this row.
      { of: "json_agg", work: () => b.rounds.change(add("two", "b", 1), true) },
      // The directory loses it before the epoch is inserted.
      { of: "FOR UPDATE", work: loseSecond },
    ];
    let isComparing = false;
    const before = async (text: string) => {
      if (isComparing && text.includes(steps[0]?.of ?? "no step")) await steps.shift()?.work();
    };
    const a = await newPeer(server, "a", { before });
    const named = { org_id: "o" as never, room_id: "r", labels: {}, created_at: "2026-01-01T00:00:00.000Z" };
    const placed = { room_uid: "rom_1" as never, host_id: "a", epoch: 1, ...named };
    await a.rounds.change((queries) => void queries.insert(placements).values(placed).run(), true);
    await server.sql("CREATE TABLE roomd.before AS TABLE roomd.rows");
    await a.rounds.change((queries) => void queries.update(placements).set({ epoch: 2 }).run(), true);
    await server.sql(`DELETE FROM roomd.rows; INSERT INTO roomd.rows SELECT * FROM roomd.before;
      UPDATE roomd.cluster SET seq = 1; DELETE FROM roomd.changes WHERE seq > 1`);
    isComparing = true;
    await a.rounds.pull();
    expect(steps).toEqual([]);
    await b.rounds.pull();
    for (const { queries } of [a, b]) {
      expect(queries.select().from(orgUse).all()).toEqual([]);
      expect(queries.select().from(placements).all()).toMatchObject([{ epoch: 2 }]);
    }
    await Promise.all([a.close(), b.close()]);
  });

  test("a copy with rows of a change after its point is compared if the directory loses that change", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    await a.rounds.change(add("one", "a", 1), true);
    await b.rounds.pull();
    const before = pointOf(b.queries);
    await a.rounds.change(add("two", "a", 1), true);
    const copy = new Copy(b.database, b.shared);
    await copy.see(pointOf(a.queries));
    await copy.bring(before, a.shared.all(), before);
    expect(all(b)).toHaveLength(2);
    await loseSecond();
    await b.rounds.pull();
    expect(all(b).map(({ org_id }) => org_id)).toEqual(["one"]);
    expect([pointOf(b.queries), seenOf(b.queries)]).toEqual([before, null]);
    await Promise.all([a.close(), b.close()]);
  });

  test("deletions that are pruned while a host reads them are not missed", async () => {
    const a = await peer("a");
    let isPruning = false;
    const before = async (text: string) => {
      if (!(isPruning && text.includes("(rows.seq, tbl, key) >"))) return;
      isPruning = false;
      await server.sql("UPDATE roomd.changes SET at = now() - interval '8 days'");
      await within(server, (run) => forgetOld(run));
    };
    const b = await newPeer(server, "b", { tables: ["org_use"].map(whole), before });
    await a.rounds.change(add("one", "a", 1), true);
    await b.rounds.pull();
    await a.rounds.change((queries) => void queries.delete(orgUse).run(), true);
    await a.rounds.change(add("two", "a", 1), true);
    isPruning = true;
    await b.rounds.pull();
    expect(isPruning).toBe(false);
    expect(all(b).map(({ org_id }) => org_id)).toEqual(["two"]);
    await Promise.all([a.close(), b.close()]);
  });

  test("a row that was deleted while the directory lacked its end is not inserted again", async () => {
    const a = await peer("a");
    await a.rounds.change(add("one", "a", 1), true);
    const [row] = a.shared.all();
    if (!row) throw new Error("there is no row");
    await server.sql(`UPDATE roomd.rows SET "row" = NULL`);
    const copy = new Copy(a.database, a.shared);
    const missingRows = (isLacking: boolean) =>
      within(server, async (run) => {
        found = await lackingRows(run, copy, [{ ...row, isLacking }], true);
      });
    let found: unknown[] = [];
    await missingRows(true);
    expect(found).toHaveLength(1);
    await missingRows(false);
    expect(found).toEqual([]);
    await a.close();
  });

  test("old deletions are purged, and a host that was down for longer has its copy rebuilt", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    await a.rounds.change(add("one", "a", 1), true);
    await b.rounds.pull();
    await a.rounds.change((queries) => void queries.delete(orgUse).run(), true);
    await a.rounds.change(add("two", "a", 1), true);
    await server.sql("UPDATE roomd.changes SET at = now() - interval '8 days' WHERE seq < 3");
    const connections = new Connections({ addresses: readAddresses(server.url("tcp")) });
    for (let again = 0; again < 2; again++) await connections.transaction(forgetOld, 5000);
    connections.close();
    expect(await server.sql("SELECT count(*) FROM roomd.rows")).toBe("1");
    expect(await server.sql("SELECT string_agg(seq::text, ',') FROM roomd.changes")).toBe("3");
    await b.rounds.pull();
    expect(all(b).map(({ org_id }) => org_id)).toEqual(["two"]);
    await b.rounds.change(add("three", "b", 1), true);
    await a.rounds.pull();
    expect(all(a).map(({ org_id }) => org_id)).toEqual(["three", "two"]);
    await Promise.all([a.close(), b.close()]);
  });

  test("rows of a newer version keep columns unknown to this version", async () => {
    const a = await peer("a");
    const row = { host_id: "h", address: "x", certificate: "c", url: "u", labels: {}, joined_at: "t" };
    await a.rounds.change(
      (queries) =>
        void queries
          .insert(hosts)
          .values({ ...row, state: "active" })
          .run(),
      true,
    );
    await server.sql(`UPDATE roomd.rows SET "row" = "row" || '{"later": 1}', seq = 2`);
    await server.sql("INSERT INTO roomd.changes VALUES (2, 'z', 'b')");
    await server.sql("UPDATE roomd.cluster SET seq = 2");
    await a.rounds.change((queries) => void queries.update(hosts).set({ state: "draining" }).run(), true);
    expect(JSON.parse(await server.sql(`SELECT "row" FROM roomd.rows`))).toMatchObject({ later: 1, state: "draining" });
    await a.close();
  });
});

/** The directory as it is; the returned function sets it back. */
async function keptDirectory(): Promise<() => Promise<unknown>> {
  await server.sql(
    "CREATE TABLE roomd.before_rows AS TABLE roomd.rows; CREATE TABLE roomd.before_changes AS TABLE roomd.changes",
  );
  return () =>
    server.sql(`TRUNCATE roomd.rows, roomd.changes; INSERT INTO roomd.rows SELECT * FROM roomd.before_rows;
    INSERT INTO roomd.changes SELECT * FROM roomd.before_changes; UPDATE roomd.cluster SET seq = (SELECT max(seq) FROM roomd.changes)`);
}

function addHosts(queries: Queries): void {
  const reached = { address: "", certificate: "", url: "", labels: {}, joined_at: "2026-01-01T00:00:00.000Z" };
  for (const host_id of ["a", "b", "c"]) putHost(queries, { host_id, state: "active", ...reached });
}

const roomOn = (host_id: string) => ({
  ...{ room_uid: "rom_1" as RoomUid, org_id: "o" as OrgId, room_id: "r", host_id, epoch: 1, labels: {} },
  created_at: "2026-01-01T00:00:00.000Z",
});

/** The changes of `roomd cluster remove`. */
function remove(queries: Queries, host_id: string): void {
  queries.delete(placements).where(eq(placements.host_id, host_id)).run();
  queries.delete(orgUse).where(eq(orgUse.host_id, host_id)).run();
  queries.update(hosts).set({ state: "gone" }).where(eq(hosts.host_id, host_id)).run();
}

describe("a removed host has no rooms and uses nothing,", () => {
  const left = `SELECT string_agg(tbl || ' ' || key, ', ' ORDER BY tbl) FROM roomd.rows
    WHERE tbl IN ('placements', 'org_use') AND "row" IS NOT NULL`;

  test("after a directory has lost its removal", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    await a.rounds.change((queries) => {
      addHosts(queries);
      insertPlacement(queries, roomOn("c"));
      add("o", "c", 1)(queries);
    }, true);
    const setBack = await keptDirectory();
    await a.rounds.change((queries) => remove(queries, "c"), true);
    await b.rounds.pull();
    await setBack();
    for (const { rounds } of [a, b, a]) await rounds.pull();
    expect(await server.sql(left)).toBe("");
    for (const each of [a, b]) expect([all(each), each.queries.select().from(placements).all()]).toEqual([[], []]);
    await Promise.all([a.close(), b.close()]);
  });

  test("after a directory has lost its ownership of a room, before its removal", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    await a.rounds.change((queries) => {
      addHosts(queries);
      insertPlacement(queries, roomOn("a"));
    }, true);
    await b.rounds.pull();
    const setBack = await keptDirectory();
    await a.rounds.change((queries) => movePlacement(queries, roomOn("a").room_uid, { host_id: "c", epoch: 2 }), true);
    await setBack();
    await b.rounds.change((queries) => remove(queries, "c"), true);
    await a.rounds.pull();
    expect(await server.sql(left)).toBe('placements ["rom_1"]');
    expect(a.queries.select().from(placements).all()).toMatchObject([{ host_id: "a", epoch: 1 }]);
    await Promise.all([a.close(), b.close()]);
  });
});

test.each([
  ["the end of the room", "c", (queries: Queries) => deletePlacement(queries, roomOn("c").room_uid), false],
  ["the removal of its host by another one", "b", (queries: Queries) => remove(queries, "c"), false],
  ["the removal of its host by itself", "c", (queries: Queries) => remove(queries, "c"), true],
] as const)("a placement is freed by %s", async (_, by, free, isRemoval) => {
  const freeing = await peer(by);
  await freeing.rounds.change((queries) => {
    addHosts(queries);
    insertPlacement(queries, roomOn("c"));
  }, true);
  await freeing.rounds.change(free, true);
  const connections = new Connections({ addresses: readAddresses(server.url("tcp")) });
  const freed = await connections.transaction((run) => whoFreed(run, roomOn("c").room_uid), 5000);
  expect(freed).toEqual({ host_id: by, isRemoval });
  connections.close();
  await freeing.close();
});

test("ends, revocations and epochs that a directory has lost are reinserted by one host and recorded", async () => {
  const [a, b] = [await peer("a"), await peer("b")];
  const at = "2026-01-01T00:00:00.000Z";
  await a.rounds.change((queries) => {
    addHosts(queries);
    queries.run(sql`INSERT INTO api_keys (key_id, kind, name, key_sha256, key_prefix, scopes, created_at, created_by_type,
      created_by_id, ended_with_maker) VALUES ('k', 'operator', 'n', 'h', 'p', '[]', ${at}, 'operator', 'host', 0)`);
    const named = { org_id: "o" as never, room_id: "r", labels: {}, created_at: at };
    queries
      .insert(placements)
      .values({ room_uid: "rom_1" as never, host_id: "a", epoch: 1, ...named })
      .run();
  }, true);
  await b.rounds.pull();
  const setBack = await keptDirectory();
  await server.sql("INSERT INTO roomd.leases VALUES ('c', 'i', '1', now(), '{}')");
  await a.rounds.change((queries) => {
    queries.update(hosts).set({ state: "gone" }).where(eq(hosts.host_id, "c")).run();
    queries.run(sql`UPDATE api_keys SET revoked_at = ${at}`);
    queries.update(placements).set({ host_id: "b", epoch: 2 }).run();
  }, true);
  await b.rounds.pull();
  await setBack();
  await Promise.all([a.rounds.pull(), b.rounds.pull()]);
  await a.rounds.pull();
  const ended = `SELECT "row" ->> 'state', "row" ->> 'revoked_at', "row" ->> 'host_id', "row" ->> 'epoch' FROM roomd.rows
    WHERE tbl <> 'org_use' AND (tbl <> 'hosts' OR key = '["c"]') ORDER BY tbl`;
  expect((await server.sql(ended)).split("\n")).toEqual([`|${at}||`, "gone||c|", "||b|2"]);
  expect(await server.sql("SELECT count(*) FROM roomd.leases WHERE host_id = 'c'")).toBe("0");
  for (const { queries } of [a, b]) {
    expect(queries.all(sql`SELECT revoked_at FROM api_keys`)).toEqual([{ revoked_at: at }]);
    expect(queries.select().from(placements).all()).toMatchObject([{ host_id: "b", epoch: 2 }]);
  }
  const recorded = [...a.putAgain, ...b.putAgain];
  expect(recorded).toHaveLength(1);
  expect(Object.keys(recorded[0] ?? {}).sort()).toEqual(["null", "o"]);
  expect(pointOf(a.queries)).toEqual(pointOf(b.queries));
  // The restored rows are an ordinary change: no host finds a diverged history afterwards.
  await a.rounds.change(add("after", "a", 1), true);
  await b.rounds.pull();
  expect(all(b)).toHaveLength(1);
  expect([...a.putAgain, ...b.putAgain]).toHaveLength(1);
  await Promise.all([a.close(), b.close()]);
});

describe("calls with an Idempotency-Key", () => {
  const call = (idempotency_key: string): NamedCall => ({
    ...{ key_id: "key_1", method: "POST", path: "/v1/rooms" },
    idempotency_key,
  });
  /** A change that carries out a call, as the pipeline does: it fails if a host has done so before. */
  const make = ({ rounds }: Peer, idempotency_key: string, work: (queries: Queries) => unknown) =>
    rounds
      .change((queries) => {
        work(queries);
        const by = rounds.doneBy(call(idempotency_key));
        if (by !== null) throw new Error(`done by ${by}`);
      }, true)
      .then(
        () => "done",
        (error: Error) => (error.message.startsWith("done by") ? error.message : "refused"),
      );
  const recorded = async () => {
    const listed = "SELECT idempotency_key || ' ' || host_id FROM roomd.done_calls ORDER BY 1";
    return (await server.sql(listed)).split("\n").filter((line) => line !== "");
  };

  test("are carried out once on all hosts, stored with their change, and in no host's copy", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    const outcomes = await Promise.all([make(a, "one", add("of a", "a", 1)), make(b, "one", add("of b", "b", 1))]);
    const [first, second] = outcomes[0] === "done" ? [a, "a"] : [b, "b"];
    expect([...outcomes].sort()).toEqual(["done", `done by ${second}`]);
    expect(await make(first, "one", add("of both", "a", 1))).toBe(`done by ${second}`);
    await Promise.all([a.rounds.pull(), b.rounds.pull()]);
    expect(all(a)).toMatchObject([{ org_id: `of ${second}` }]);
    expect(all(b)).toEqual(all(a));
    expect(await recorded()).toEqual([`one ${second}`]);
    expect(await server.sql("SELECT string_agg(tbl, ' ') FROM roomd.rows")).toBe("org_use");
    await Promise.all([a.close(), b.close()]);
  });

  test("are not stored for failed changes, but are for changes of no row", async () => {
    const a = await peer("a");
    expect(await make(a, "one", add("x", "a", 1))).toBe("done");
    expect(await make(a, "two", add("x", "a", 1))).toBe("refused");
    expect(await recorded()).toEqual(["one a"]);
    expect(await make(a, "two", () => {})).toBe("done");
    expect(await recorded()).toEqual(["one a", "two a"]);
    expect(await server.sql("SELECT count(*) FROM roomd.changes")).toBe("2");
    expect(pointOf(a.queries).seq).toBe(2);
    await a.close();
  });

  test("that were carried out before run again with the rest of their round", async () => {
    const [a, b] = [await peer("a"), await peer("b")];
    expect(await make(b, "old", add("of b", "b", 1))).toBe("done");
    const needs = (org_id: string) => (queries: Queries) => {
      if (!queries.all(sql`SELECT 1 FROM org_use WHERE org_id = ${org_id}`).length) throw new Error("it needs a row");
      add("late", "a", 1)(queries);
    };
    const outcomes = await Promise.all([
      make(a, "old", add("new", "a", 1)),
      make(a, "free", add("free", "a", 1)),
      make(a, "needs", needs("new")),
      make(a, "same row", add("new", "a", 2)),
      make(a, "free", add("free twice", "a", 1)),
    ]);
    expect(outcomes).toEqual(["done by b", "done", "refused", "done", "done by a"]);
    // By the first trial "needs" had succeeded.
    expect(await recorded()).toEqual(["free a", "old b", "same row a"]);
    expect(all(a).map(({ org_id, rooms }) => [org_id, rooms])).toEqual([
      ["free", 1],
      ["new", 2],
      ["of b", 1],
    ]);
    await Promise.all([a.close(), b.close()]);
  });

  test("are deleted after their replies, in pieces", async () => {
    await server.sql(`INSERT INTO roomd.done_calls SELECT 'key_1', 'POST', '/v1/rooms', n, 'a',
      now() - interval '23 hours' - n / 15000 * interval '2 hours' FROM generate_series(1, 25000) AS n`);
    const connections = new Connections({ addresses: readAddresses(server.url("tcp")) });
    const forget = () => connections.transaction(forgetCalls, 5000);
    expect([await forget(), await forget(), await forget()]).toEqual([true, false, false]);
    expect(await server.sql("SELECT count(*) FROM roomd.done_calls")).toBe("14999");
    connections.close();
  });
});

test("epochs lost by a directory are inserted once the host is a member again, also by another process", async () => {
  const a = await peer("a");
  const named = { org_id: "o" as never, room_id: "r", labels: {}, created_at: "2026-01-01T00:00:00.000Z" };
  const placed = { room_uid: "rom_1" as never, host_id: "a", epoch: 1, ...named };
  const moved_use = { sandboxes: 1, memory_mib: 512, disk_gib: 2 } as never;
  await a.rounds.change((queries) => void queries.insert(placements).values(placed).run(), true);
  await server.sql("CREATE TABLE roomd.before AS TABLE roomd.rows");
  await a.rounds.change((queries) => void queries.update(placements).set({ epoch: 2, moved_use }).run(), true);
  const incarnation = await server.sql("SELECT incarnation FROM roomd.leases");
  await server.sql(`UPDATE roomd.leases SET incarnation = 'another'; DELETE FROM roomd.rows;
    INSERT INTO roomd.rows SELECT * FROM roomd.before; UPDATE roomd.cluster SET seq = 1; DELETE FROM roomd.changes WHERE seq > 1`);
  await a.rounds.pull();
  const epoch = () => server.sql(`SELECT "row" ->> 'epoch' FROM roomd.rows WHERE tbl = 'placements'`);
  expect(await epoch()).toBe("1");
  // Other changes are read in the meantime.
  const b = await peer("b");
  await b.rounds.change(add("one", "b", 1), true);
  await a.rounds.pull();
  expect(all(a)).toHaveLength(1);
  await server.sql(`UPDATE roomd.leases SET incarnation = '${incarnation}' WHERE host_id = 'a'`);
  await a.beside();
  expect(await epoch()).toBe("2");
  const kept = await server.sql(`SELECT "row" ->> 'moved_use' FROM roomd.rows WHERE tbl = 'placements'`);
  expect(JSON.parse(kept)).toEqual(moved_use);
  await a.rounds.change(add("two", "a", 1), true);
  await b.rounds.pull();
  expect(all(b)).toHaveLength(2);
  await Promise.all([a.close(), b.close()]);
});
