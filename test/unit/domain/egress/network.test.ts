/** Destinations of a sandbox, whatever names its guest requests: a bounded number of each kind, in memory and in the database. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nextTurn } from "../../../../daemon/core/concurrency/next-turn.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import type { Denial } from "../../../../daemon/domain/egress/denials.ts";
import { MAX_DESTINATIONS, Network } from "../../../../daemon/domain/egress/network.ts";
import { Networks } from "../../../../daemon/domain/egress/networks.ts";
import { forgetTraffic } from "../../../../daemon/domain/egress/store.ts";
import { MAX_ROWS_WRITTEN, Tally } from "../../../../daemon/domain/egress/tally.ts";
import { isKept } from "../../../../daemon/domain/sandboxes/index.ts";
import type { SandboxId } from "../../../../shared/ids.ts";
import { insertRow } from "../../../harness/durability/insert-row.ts";

const ID = "sbx_1" as SandboxId;
const MADE = "2026-01-31T12:00:00.000Z";
const SANDBOX = { sandbox_id: ID, created_at: MADE };
const NOTHING = { network: null, destinations: [] };
const bytes = (sent_bytes: number, received_bytes = 0) => ({ sent_bytes, received_bytes, connections: 0 });
const refusal = (host: string): Denial => ({ host, ip: null, port: 443, reason: "not_listed" });
const allowed = (host: string, ip = "192.0.2.1") => ({ host, ip, port: 443 });

describe("the destinations of a sandbox", () => {
  test("are distinguished by name, port and reason, the newest first", () => {
    const network = new Network(ID, MADE, NOTHING);
    const first = network.opened(allowed("example.org", "192.0.2.1"));
    network.refused(refusal("evil.example"));
    network.refused(refusal("evil.example"));
    network.refused({ ...refusal("evil.example"), reason: "blocked_address" });
    const second = network.opened(allowed("example.org", "192.0.2.2"));
    for (const report of [first, second]) report(bytes(3, 5));
    const { since, items, other } = network.shown();
    expect(since).toBe(MADE);
    expect(other).toEqual({ allowed: 0, refused: 0 });
    const shown = items.map(({ host, ip, allowed, reason, connections, sent_bytes, received_bytes }) => [
      ...[host, ip, allowed, reason, connections, sent_bytes, received_bytes],
    ]);
    expect(shown).toHaveLength(3);
    expect(shown).toContainEqual(["example.org", "192.0.2.2", true, null, 2, 6, 10]);
    expect(shown).toContainEqual(["evil.example", null, false, "not_listed", 2, 0, 0]);
    expect(shown).toContainEqual(["evil.example", null, false, "blocked_address", 1, 0, 0]);
    const moments = items.map(({ last_at }) => last_at);
    expect(moments).toEqual([...moments].sort().reverse());
  });

  test("do not grow under 1,000,000 hostile names, and allowed ones stay", () => {
    const network = new Network(ID, MADE, NOTHING);
    const report = network.opened(allowed("example.org"));
    report(bytes(7));
    for (let name = 0; name < 1_000_000; name++) network.refused(refusal(`x${name}.evil.example`));
    const { items, other } = network.shown();
    expect(items.filter((each) => each.allowed)).toMatchObject([{ host: "example.org", sent_bytes: 7 }]);
    const refused = items.filter((each) => !each.allowed).map(({ host }) => host);
    expect(refused).toHaveLength(MAX_DESTINATIONS);
    expect(refused).toContain("x999999.evil.example");
    expect(other).toEqual({ allowed: 0, refused: 1_000_000 - MAX_DESTINATIONS });
    // One slot each: the number of rows to write is bounded as well.
    const { destinations } = network.take(Number.POSITIVE_INFINITY);
    expect(destinations).toHaveLength(MAX_DESTINATIONS + 1);
    expect(new Set(destinations.map(({ allowed, slot }) => `${allowed} ${slot}`)).size).toBe(MAX_DESTINATIONS + 1);
    expect(Math.max(...destinations.map(({ slot }) => slot))).toBe(MAX_DESTINATIONS - 1);
  });

  test("that were allowed are evicted by least recent use, and count no bytes from then on", () => {
    const network = new Network(ID, MADE, NOTHING);
    const meters = Array.from({ length: MAX_DESTINATIONS }, (_, index) => network.opened(allowed(`h${index}.example`)));
    // The first is used again, the second is the oldest then.
    meters[0]?.(bytes(1));
    network.opened(allowed("next.example"));
    meters[1]?.(bytes(1000));
    const { items, other } = network.shown();
    const hosts = items.map(({ host }) => host);
    expect(hosts).toContain("h0.example");
    expect(hosts).toContain("next.example");
    expect(hosts).not.toContain("h1.example");
    expect(other).toEqual({ allowed: 1, refused: 0 });
    expect(items.reduce((sum, { sent_bytes }) => sum + sent_bytes, 0)).toBe(1);
  });
});

describe("in the database", () => {
  let connection: Connection;
  let database: Database;
  let networks: Networks;
  let tally: Tally;
  let isFull: boolean;
  let failure: () => Promise<never>;
  const madeTally = () => {
    networks = new Networks(database.queries);
    const failing: Database = {
      ...database,
      commit: (work, vital) => (isFull ? failure() : database.commit(work, vital)),
    };
    tally = new Tally(
      { database: failing, log: makeLog("error", () => {}), meter: { count: () => {} }, isKept },
      networks,
    );
  };
  const rows = () => database.queries.all<{ host: string }>("SELECT host FROM egress_destinations");

  beforeEach(() => {
    connection = openConnection(":memory:");
    migrate(connection);
    database = makeDatabase(connection);
    insertRow(connection, database, "orgs", { org_id: "org_1" });
    insertRow(connection, database, "rooms", { room_uid: "rom_1", org_id: "org_1", state: "active" });
    const row = { room_uid: "rom_1", org_id: "org_1", state: "destroyed", egress_mode: "none", guest_cid: 9100 };
    insertRow(connection, database, "sandboxes", { ...row, sandbox_id: ID });
    isFull = false;
    failure = () => Promise.reject(new Error("full"));
    madeTally();
  });
  afterEach(() => database.close());

  test("reads give the same before and after the write, and in the next daemon, which continues with it", async () => {
    networks.of(SANDBOX).opened(allowed("example.org"))(bytes(3));
    for (let name = 0; name < MAX_DESTINATIONS + 5; name++) networks.of(SANDBOX).refused(refusal(`x${name}.example`));
    const before = networks.shown(ID, MADE);
    await tally.write();
    expect(networks.shown(ID, MADE)).toEqual(before);
    madeTally();
    expect(networks.shown(ID, MADE)).toEqual({ ...before, items: expect.any(Array) });
    const byHost = (items: typeof before.items) =>
      items.toSorted((a, b) => String(a.host).localeCompare(String(b.host)));
    expect(byHost(networks.shown(ID, MADE).items)).toEqual(byHost(before.items));
    networks.of(SANDBOX).opened(allowed("example.org"))(bytes(4));
    networks.of(SANDBOX).refused(refusal("late.example"));
    await tally.write();
    madeTally();
    const { items, other } = networks.shown(ID, MADE);
    expect(items.find(({ host }) => host === "example.org")).toMatchObject({ connections: 2, sent_bytes: 7 });
    expect(items.map(({ host }) => host)).toContain("late.example");
    expect(other).toEqual({ allowed: 0, refused: 6 });
    expect(rows()).toHaveLength(MAX_DESTINATIONS + 1);
  });

  test("a failed write is retried with the next one", async () => {
    networks.of(SANDBOX).refused(refusal("evil.example"));
    networks.end(ID);
    isFull = true;
    await tally.write();
    expect(rows()).toEqual([]);
    isFull = false;
    await tally.write();
    expect(rows()).toEqual([{ host: "evil.example" }]);
  });

  test("a failed write is retried, also if another was due while it ran", async () => {
    networks.of(SANDBOX).refused(refusal("evil.example"));
    networks.end(ID);
    const disk = Promise.withResolvers<never>();
    [isFull, failure] = [true, () => disk.promise];
    const writes = [tally.write(), tally.write()];
    await nextTurn();
    disk.reject(new Error("full"));
    await Promise.all(writes);
    isFull = false;
    await tally.write();
    expect(rows()).toEqual([{ host: "evil.example" }]);
  });

  test("a write has a limited number of rows, and others proceed", async () => {
    const many = Array.from({ length: 8 }, (_, index) => ({ ...SANDBOX, sandbox_id: `sbx_${index + 1}` as SandboxId }));
    const row = { room_uid: "rom_1", org_id: "org_1", state: "destroyed", egress_mode: "none" };
    for (const [index, { sandbox_id }] of many.slice(1).entries()) {
      insertRow(connection, database, "sandboxes", { ...row, sandbox_id, guest_cid: 9101 + index });
    }
    for (const each of many) {
      for (let name = 0; name < MAX_DESTINATIONS; name++) networks.of(each).refused(refusal(`x${name}.example`));
    }
    await tally.write();
    expect(rows().length).toBeLessThanOrEqual(MAX_ROWS_WRITTEN);
    expect(rows().length).toBeGreaterThan(MAX_ROWS_WRITTEN - 10);
    // A sandbox that is always active does not keep the others from being written.
    networks.of(SANDBOX).refused(refusal("again.example"));
    await tally.write();
    await tally.write();
    expect(rows()).toHaveLength(many.length * MAX_DESTINATIONS);
  });

  test("a deleted sandbox leaves no rows, and is not written again", async () => {
    networks.of(SANDBOX).refused(refusal("evil.example"));
    await tally.write();
    networks.of(SANDBOX).refused(refusal("late.example"));
    await database.commit((queries) => {
      queries.run("DELETE FROM sandboxes");
      forgetTraffic(queries, ID);
    });
    await tally.write();
    expect(rows()).toEqual([]);
    expect(database.queries.all("SELECT * FROM egress_networks")).toEqual([]);
  });
});
