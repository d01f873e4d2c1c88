/** A directory that lacks rows of the copies, or has rows that a host cannot have: no host stops to follow it, and no other write fails. */
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Postgres } from "../../harness/hosts/postgres.ts";
import { Chance } from "../../harness/random.ts";
import { copyOf, directoryOf, forgetPast, newDirectory, newPeer, orgsOf, type Peer } from "./peers.ts";

let server: Postgres;

beforeAll(async () => {
  server = await Postgres.start({ settings: { fsync: "off" } });
}, 60_000);
afterAll(() => server?.[Symbol.asyncDispose]());
beforeEach(() => newDirectory(server));

const AT = "2026-01-01T00:00:00.000Z";

const addRoom = (peer: Peer, org_id: string, room_id: string, state = "active") =>
  peer.database.commit(() =>
    peer.insert("rooms", { room_uid: `rom_${org_id}_${room_id}`, room_id, org_id, state, status_reason: "" }),
  );
const addOrg = (peer: Peer, org_id: string, name = org_id) => peer.insert("orgs", { org_id, name, plan: "free" });
const addKey = (peer: Peer, key_id: string, org_id: string) =>
  peer.insert("api_keys", { key_id, org_id, kind: "api", key_sha256: `hash ${key_id}`, created_at: AT });

let written = 0;

/** Pulls, with writes of local rows at the same time; these must not fail. */
async function pullAll(peers: readonly Peer[]): Promise<void> {
  const pulls = Promise.all(peers.map(({ rounds }) => rounds.pull()));
  let isOver = false;
  void pulls.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const name = `beside ${written++}`;
    const write = ({ database, insert }: Peer) =>
      database.commit(() => insert("room_former_events", { room_uid: name, id: 1 }));
    await Promise.all(peers.map(write));
  }
  await pulls;
}

async function expectConverged(peers: readonly Peer[]): Promise<void> {
  const directory = await directoryOf(server);
  for (const peer of peers) {
    expect(copyOf(peer)).toEqual(directory);
    expect(peer.unfit()).toBe(0);
  }
}

test("after any loss of rows in the directory, each host has them again, and its rooms their organizations", async () => {
  const chance = new Chance();
  console.log(`ROOMD_TEST_SEED=${chance.seed}`);
  const peers = await Promise.all(["a", "b", "c"].map((host_id) => newPeer(server, host_id)));
  const [a, b, c] = peers as [Peer, Peer, Peer];
  await a.rounds.change(() => {
    for (let n = 0; n < 8; n++) {
      const org_id = `org_${n}`;
      addOrg(a, org_id);
      for (const key of ["x", "y"]) addKey(a, `key_${n}_${key}`, org_id);
      a.insert("users", { user_id: `user_${n}`, email: `${n}@example.org` });
      a.insert("memberships", { user_id: `user_${n}`, org_id, role: "admin" });
      a.insert("webhooks", { webhook_id: `web_${n}`, org_id, secret_number: n });
      a.insert("placements", { room_uid: `rom_${n}`, org_id, room_id: "r", host_id: "a", labels: "{}" });
      a.insert("credit_grants", { org_id, granted: n });
    }
  }, true);
  await pullAll(peers);
  for (const [peer, org_id, state] of [
    ...([0, 1, 2].map((n) => [a, `org_${n}`, "active"]) as [Peer, string, string][]),
    ...([2, 3].map((n) => [b, `org_${n}`, "active"]) as [Peer, string, string][]),
    [c, "org_4", "destroyed"] as [Peer, string, string],
  ]) {
    await addRoom(peer, org_id, "room", state);
  }
  for (let round = 0; round < 12; round++) {
    const keys = JSON.parse(
      await server.sql(`SELECT json_agg(json_build_array(tbl, key)) FROM roomd.rows WHERE "row" IS NOT NULL`),
    ) as [string, string][];
    const share = chance.next();
    const lost = keys.filter(() => chance.next() < share);
    const named = lost.map(([tbl, key]) => `('${tbl}', '${key}')`);
    if (named.length > 0) await server.sql(`DELETE FROM roomd.rows WHERE (tbl, key) IN (${named.join()})`);
    await forgetPast(server);
    for (let again = 0; again < 3; again++) await pullAll(peers);
    await expectConverged(peers);
    expect(orgsOf(c)).toEqual(expect.arrayContaining([0, 1, 2, 3, 4].map((n) => `org_${n}`)));
    const joined = await newPeer(server, `joined ${round}`);
    await pullAll([joined]);
    await expectConverged([joined]);
    await joined.close();
  }
  expect([a, b, c].flatMap(({ putAgain }) => putAgain).length).toBeGreaterThan(0);
  await Promise.all(peers.map((peer) => peer.close()));
}, 60_000);

test("a reinserted organization gets another name if its own is in use by now", async () => {
  const [a, b] = [await newPeer(server, "a"), await newPeer(server, "b")];
  await a.rounds.change(() => addOrg(a, "org_a", "late"), true);
  await addRoom(a, "org_a", "room");
  await server.sql("DELETE FROM roomd.rows");
  await forgetPast(server);
  await b.rounds.change(() => addOrg(b, "org_b", "late"), true);
  for (let again = 0; again < 2; again++) await pullAll([a, b]);
  await expectConverged([a, b]);
  const names = b.queries.all(sql`SELECT org_id, name FROM orgs ORDER BY org_id`);
  expect(names).toEqual([
    { org_id: "org_a", name: "late org_a" },
    { org_id: "org_b", name: "late" },
  ]);
  expect(a.putAgain).toEqual([{ org_a: { orgs: ["org_a"] } }]);
  await Promise.all([a.close(), b.close()]);
});

/** Sets the directory back to its rows as of `asOf`, with changes of other names. */
const asOf = () => server.sql("DROP TABLE IF EXISTS roomd.before; CREATE TABLE roomd.before AS TABLE roomd.rows");
async function setBack(): Promise<void> {
  await server.sql("DELETE FROM roomd.rows; INSERT INTO roomd.rows SELECT * FROM roomd.before");
  await forgetPast(server);
}

test("removed rows that granted access do not return with a restored directory", async () => {
  const [a, b] = [await newPeer(server, "a"), await newPeer(server, "b")];
  const insertAll = (at: string) => {
    a.insert("users", { user_id: "u", email: `${at}@example.org`, created_at: at });
    a.insert("memberships", { org_id: "org_a", user_id: "u", role: "admin", created_at: at });
    a.insert("ssh_keys", { ssh_key_id: "ssh", org_id: "org_a", fingerprint: "f", created_at: at });
    a.insert("passkeys", { passkey_id: "pass", user_id: "u", credential_id: "c", created_at: at });
    a.insert("identities", { identity_id: "idt", user_id: "u", subject: "s", created_at: at });
    a.insert("browsers", { secret_sha256: "browser", user_id: "u", created_at: at });
    a.insert("links", { link_id: "link", token_sha256: "t", created_at: at });
    a.insert("webhooks", { webhook_id: "web", org_id: "org_a", created_at: at });
    addKey(a, "key", "org_a");
  };
  await a.rounds.change(() => {
    addOrg(a, "org_a");
    insertAll(AT);
  }, true);
  await pullAll([b]);
  await asOf();
  const tables = "memberships ssh_keys passkeys identities browsers links webhooks api_keys users".split(" ");
  await a.rounds.change((queries) => {
    for (const table of tables) queries.run(sql.raw(`DELETE FROM ${table}`));
  }, true);
  await pullAll([b, a]);
  const hashes = sql`SELECT key_sha256 FROM tombstones WHERE tbl = 'api_keys'`;
  expect([a, b].map(({ queries }) => queries.all(hashes))).toEqual(Array(2).fill([{ key_sha256: "hash key" }]));
  await setBack();
  for (let again = 0; again < 2; again++) await pullAll([b, a]);
  await expectConverged([a, b]);
  const left = () =>
    a.queries.all(sql.raw(tables.map((table) => `SELECT '${table}' FROM ${table}`).join(" UNION ALL ")));
  expect(left()).toEqual([]);
  expect([...a.putAgain, ...b.putAgain]).not.toEqual([]);
  // A directory that was set back twice may have one in a change that is new here.
  const key = `roomd.rows WHERE tbl = 'ssh_keys'`;
  await server.sql(`UPDATE roomd.cluster SET seq = seq + 1;
    INSERT INTO roomd.changes (seq, change_id, host_id) SELECT seq, 'again', 'a' FROM roomd.cluster;
    UPDATE roomd.rows SET seq = (SELECT seq FROM roomd.cluster), "row" = json_build_object('ssh_key_id', 'ssh', 'org_id', 'org_a',
      'name', '', 'algorithm', '', 'fingerprint', 'f', 'public_key', '', 'created_at', '${AT}', 'created_by_type', '', 'created_by_id', '')
      WHERE tbl = 'ssh_keys'`);
  expect(await server.sql(`SELECT count(*) FROM ${key} AND "row" IS NOT NULL`)).toBe("1");
  for (let again = 0; again < 2; again++) await pullAll([b, a]);
  await expectConverged([a, b]);
  expect(left()).toEqual([]);
  // The same keys later are other rows.
  await a.rounds.change(() => insertAll("2026-02-01T00:00:00.000Z"), true);
  await asOf();
  await setBack();
  for (let again = 0; again < 2; again++) await pullAll([b, a]);
  await expectConverged([a, b]);
  expect(left()).toHaveLength(tables.length - 1);
  await Promise.all([a, b].map((peer) => peer.close()));
});

test("rows that a failover loses count as lost, not as removed: with the former primary they return", async () => {
  const [a, b] = [await newPeer(server, "a"), await newPeer(server, "b")];
  await a.rounds.change(() => addOrg(a, "org_a"), true);
  await pullAll([a, b]);
  await asOf();
  const member = { org_id: "org_a", user_id: "u", role: "admin", created_at: AT };
  await a.rounds.change(() => a.insert("memberships", member), true);
  await pullAll([b]);
  await server.sql("CREATE TABLE roomd.primary_rows AS TABLE roomd.rows");
  await setBack();
  for (let again = 0; again < 2; again++) await pullAll([a, b]);
  expect(b.queries.all(sql`SELECT user_id FROM memberships`)).toEqual([]);
  await server.sql("DELETE FROM roomd.rows; INSERT INTO roomd.rows SELECT * FROM roomd.primary_rows");
  await forgetPast(server);
  for (let again = 0; again < 2; again++) await pullAll([a, b]);
  await expectConverged([a, b]);
  expect(b.queries.all(sql`SELECT user_id FROM memberships`)).toEqual([{ user_id: "u" }]);
  await Promise.all([a, b].map((peer) => peer.close()));
});

test("restrictions survive a restored directory, but yield to a directory that is ahead of the host", async () => {
  const [a, b] = [await newPeer(server, "a"), await newPeer(server, "b")];
  await a.rounds.change(() => {
    addOrg(a, "org_a");
    addKey(a, "key", "org_a");
    a.insert("users", { user_id: "u", email: "u@example.org" });
    a.insert("memberships", { org_id: "org_a", user_id: "u", role: "admin" });
  }, true);
  await asOf();
  const soon = "2026-03-01T00:00:00.000Z";
  await a.rounds.change((queries) => {
    queries.run(sql`UPDATE api_keys SET expires_at = ${soon}`);
    queries.run(sql`UPDATE users SET disabled_at = ${AT}`);
    queries.run(sql`UPDATE memberships SET role = 'viewer'`);
  }, true);
  await pullAll([b]);
  await setBack();
  for (let again = 0; again < 2; again++) await pullAll([a, b]);
  await expectConverged([a, b]);
  const seen = ({ queries }: Peer) => [
    queries.all(sql`SELECT expires_at FROM api_keys`),
    queries.all(sql`SELECT disabled_at FROM users`),
    queries.all(sql`SELECT role FROM memberships`),
  ];
  const strict = [[{ expires_at: soon }], [{ disabled_at: AT }], [{ role: "viewer" }]];
  expect([seen(a), seen(b)]).toEqual([strict, strict]);
  await a.rounds.change((queries) => {
    queries.run(sql`UPDATE users SET disabled_at = NULL`);
    queries.run(sql`UPDATE memberships SET role = 'owner'`);
  }, true);
  await server.sql("DELETE FROM roomd.changes WHERE seq < (SELECT seq FROM roomd.cluster)");
  await pullAll([b, a]);
  await expectConverged([a, b]);
  expect(seen(b)).toEqual([[{ expires_at: soon }], [{ disabled_at: null }], [{ role: "owner" }]]);
  await Promise.all([a, b].map((peer) => peer.close()));
});

test("a key revoked or expired at its removal does not return, and hosts that join later do not get it", async () => {
  const [a, b] = [await newPeer(server, "a"), await newPeer(server, "b")];
  await a.rounds.change(() => {
    addOrg(a, "org_a");
    for (const key_id of ["ended", "expired"]) addKey(a, key_id, "org_a");
  }, true);
  await asOf();
  await a.rounds.change((queries) => {
    queries.run(sql`UPDATE api_keys SET revoked_at = ${AT} WHERE key_id = 'ended'`);
    queries.run(sql`UPDATE api_keys SET expires_at = ${AT} WHERE key_id = 'expired'`);
  }, true);
  await pullAll([a, b]);
  await a.rounds.change((queries) => void queries.run(sql`DELETE FROM api_keys`), true);
  await pullAll([a, b]);
  await setBack();
  await pullAll([b]);
  await pullAll([a, b]);
  await expectConverged([a, b]);
  expect(a.queries.all(sql`SELECT key_id FROM api_keys`)).toEqual([]);
  expect(b.putAgain).toHaveLength(1);
  const joined = await newPeer(server, "c");
  await pullAll([joined]);
  await expectConverged([joined]);
  await Promise.all([a, b, joined].map((peer) => peer.close()));
});

test("a host that is no member keeps and lists the organizations of its rooms", async () => {
  const a = await newPeer(server, "a");
  await a.rounds.change(() => ["org_a", "org_b"].map((org_id) => addOrg(a, org_id)), true);
  await addRoom(a, "org_a", "room");
  await server.sql("DELETE FROM roomd.rows; DELETE FROM roomd.leases");
  await forgetPast(server);
  await pullAll([a]);
  expect([orgsOf(a), a.unfit(), await directoryOf(server)]).toEqual([["org_a"], 1, []]);
  await a.close();
});

test("rows that do not fit are quarantined until they do, and the rest of the directory is followed", async () => {
  const a = await newPeer(server, "a");
  await a.rounds.change(() => {
    addOrg(a, "org_a");
    addKey(a, "key_1", "org_a");
    for (const host_id of ["a", "b"]) a.insert("hosts", { host_id, state: "active", labels: "{}" });
  }, true);
  const change = (seq: number, statements: string) =>
    server.sql(`UPDATE roomd.cluster SET seq = ${seq}; INSERT INTO roomd.changes VALUES (${seq}, 'change ${seq}', 'b');
      ${statements}`);
  const set = (seq: number, key: string, fields: object) =>
    `UPDATE roomd.rows SET seq = ${seq}, "row" = "row" || '${JSON.stringify(fields)}' WHERE key = '["${key}"]'`;
  await change(
    2,
    `${set(2, "b", { state: "asleep" })}; ${set(2, "key_1", { kind: "later" })}; ${set(2, "org_a", { plan: "more" })};
     INSERT INTO roomd.rows SELECT 'api_keys', '["key_2"]', "row" || '{"key_id": "key_2", "org_id": "org_none", "kind": "api",
       "key_sha256": "other"}', 2 FROM roomd.rows WHERE key = '["key_1"]'`,
  );
  await pullAll([a]);
  const seen = () => [
    a.queries.all(sql`SELECT plan FROM orgs`),
    a.queries.all(sql`SELECT state FROM hosts WHERE host_id = 'b'`),
    a.queries.all(sql`SELECT key_id FROM api_keys ORDER BY key_id`),
    a.unfit(),
  ];
  // A key with an unknown value authenticates no caller; a host stays as it was known.
  expect(seen()).toEqual([[{ plan: "more" }], [{ state: "active" }], [], 3]);
  await expect(
    a.rounds.change((queries) => void queries.run(sql`UPDATE hosts SET state = 'draining' WHERE host_id = 'b'`), true),
  ).rejects.toMatchObject({ code: "cluster_unavailable" });
  await a.rounds.change(() => addOrg(a, "org_b"), true);
  await change(4, `${set(4, "b", { state: "draining" })}; ${set(4, "key_1", { kind: "api" })}`);
  await pullAll([a]);
  expect(seen()).toEqual([[{ plan: "more" }, { plan: "free" }], [{ state: "draining" }], [{ key_id: "key_1" }], 1]);
  // The organization of a key may come after it: changes are read in the order in which rows changed last.
  await change(
    5,
    `INSERT INTO roomd.rows SELECT tbl, '["org_none"]', "row" || '{"org_id": "org_none", "name": "none"}', 5
       FROM roomd.rows WHERE key = '["org_a"]'; ${set(5, "key_2", { name: "again" })}`,
  );
  await pullAll([a]);
  expect(seen()[2]).toEqual([{ key_id: "key_1" }, { key_id: "key_2" }]);
  await expectConverged([a]);
  await a.close();
});
