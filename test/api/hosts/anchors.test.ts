/** Tampering that audit anchors detect: data of a host truncated or rewritten by an attacker with access to all of it. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ANCHORS_STAY } from "../../../daemon/cluster/schema.ts";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { hashOf } from "../../../daemon/domain/audit/chain/hash-chain.ts";
import type { AuditRow } from "../../../daemon/domain/audit/table.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;

beforeAll(async () => {
  service = await TestHosts.start(2, { env: { ROOMD_AUDIT_HEADS_INTERVAL: "1s" } });
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await service.knowEachOther();
  for (const host of [one, two]) {
    await host.ok("POST", "/v1/rooms", { room_id: `of-${host.env.ROOMD_HOST_ID}`, host: host.env.ROOMD_HOST_ID });
  }
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

const sql = (statement: string) => service.postgres.sql(statement);
const anchored = async (host: TestDaemon) =>
  Number(
    await sql(
      `SELECT coalesce(max(seq), 0) FROM roomd.audit_anchors WHERE host_id = '${host.env.ROOMD_HOST_ID}' AND org_id = '${one.orgId}'`,
    ),
  );
const verify = () => one.ok("GET", "/v1/orgs/self/audit/verify");
/** A host that was silent before is waited for only briefly, until it has answered. */
const verifyBoth = (host = one) =>
  until("both hosts answer", async () => {
    const found = await host.ok("GET", "/v1/orgs/self/audit/verify");
    return found.hosts.length === 2 ? found : null;
  });
const chainOf = ({ hosts }: Json, host: string) => hosts.find((each: Json) => each.host === host);

test("chains are anchored soon after they grow and when a daemon stops, by immutable rows", async () => {
  await until("both are anchored", async () => (await anchored(one)) > 1 && (await anchored(two)) > 1);
  const found = await verify();
  expect(found).toMatchObject({ ok: true, broken_at: null });
  expect(found.warnings).toBeUndefined();
  for (const change of [
    "UPDATE roomd.audit_anchors SET hash = ''",
    "DELETE FROM roomd.audit_anchors",
    "TRUNCATE roomd.audit_anchors",
  ]) {
    await expect(sql(change), change).rejects.toThrow(ANCHORS_STAY);
  }
  await two.ok("POST", "/v1/rooms", { room_id: "last", host: "host-2" });
  await two.end("SIGTERM");
  const last = await inData(two, ({ queries }) => headOf(queries));
  expect(await anchored(two)).toBe(last);
  await two.serve();
  await service.knowEachOther();
});

test("a move anchors both chains", async () => {
  await one.ok("POST", "/v1/rooms/of-host-1/move", { host: "host-2" });
  const seqOf = async (host: TestDaemon, event: string) =>
    (await host.ok("GET", `/v1/orgs/self/audit?event=${event}`)).items[0].seq;
  const [out, into] = [await seqOf(one, "room.moved_out"), await seqOf(two, "room.moved_in")];
  await until("both moves are anchored", async () => (await anchored(one)) >= out && (await anchored(two)) >= into);
});

test("a table missing from an older version exists once a host starts", async () => {
  await sql("DROP TABLE roomd.audit_anchors; DROP FUNCTION roomd.refuse_change()");
  await one.restart("SIGTERM");
  await until("the table of anchors is filled again", async () => (await anchored(one)) > 0);
  await expect(sql("DELETE FROM roomd.audit_anchors")).rejects.toThrow(ANCHORS_STAY);
  await until("the other host has anchors", async () => {
    await two.ok("GET", "/v1/rooms");
    return (await anchored(two)) > 0;
  });
});

test("an unavailable database or host is reported, and blocks nothing", async () => {
  await service.postgres.stop();
  expect(await verify()).toMatchObject({
    ok: true,
    warnings: [expect.stringMatching(/^host-1: /), expect.stringMatching(/^host-2: /)],
  });
  await service.postgres.begin();
  await two.end("SIGTERM");
  expect(await verify()).toMatchObject({
    ok: true,
    warnings: [expect.stringMatching(/^host-1: .*host-2/), expect.stringContaining("host-2")],
  });
  await two.serve();
  await service.knowEachOther();
}, 60_000);

test("truncated records are detected, even if everything this host has about them is gone", async () => {
  const { seq, kept } = await whileAway(two, async () => {
    const last = await inData(two, ({ queries }) => headOf(queries));
    forgetHeads(two);
    await inData(two, (connection) => {
      untie(connection);
      connection.execute(`DELETE FROM audit WHERE org_key = '${two.orgId}' AND seq >= ${last - 2}`);
      connection.execute(
        `UPDATE audit_heads SET seq = ${last - 3}, hash = (SELECT hash FROM audit WHERE org_key = '${two.orgId}' AND seq = ${last - 3}) WHERE org_key = '${two.orgId}'`,
      );
    });
    return { seq: last, kept: last - 3 };
  });
  expect(seq).toBeGreaterThan(kept);
  await until("the check of the audit warns", async () => (await checkOf(two)).status === "warn");
  const found = await verifyBoth();
  expect(found).toMatchObject({ ok: false });
  expect(chainOf(found, "host-1")).toMatchObject({ ok: true });
  // Newer records have taken the numbers of the removed ones: the difference is in the anchor.
  expect(chainOf(found, "host-2").broken_at).toBeGreaterThan(kept);
  expect(two.logged({ level: "error", org_id: two.orgId })).not.toEqual([]);
  const result = await two.cli(["audit", "verify", "--host"]);
  expect([result.status, result.stdout]).toEqual([1, expect.stringContaining(two.orgId)]);
  expect((await two.cli(["doctor"])).stdout).toMatch(/^warn +audit\b/m);
  // The chain continues, and is anchored again: that hides nothing.
  for (let n = 0; n < 8; n++) await two.ok("POST", "/v1/rooms", { room_id: `more-${n}`, host: "host-2" });
  await until("new records are anchored", async () => (await anchored(two)) > seq);
  await two.restart("SIGTERM");
  await until("the anchors are compared again", async () => (await checkOf(two)).status === "warn");
  expect((await two.cli(["doctor"])).stdout).toMatch(/^warn +audit\b/m);
}, 60_000);

test("a rewritten record is detected, even with every later hash recomputed", async () => {
  const changed = 3;
  await whileAway(one, async () => {
    forgetHeads(one);
    await inData(one, (connection) => {
      untie(connection);
      rewriteFrom(connection, changed);
    });
  });
  const found = chainOf(await verifyBoth(two), "host-1");
  expect(found.ok).toBe(false);
  expect(found.broken_at).toBeGreaterThanOrEqual(changed);
  const by = await two.cli(["audit", "verify"]);
  expect([by.status, by.stdout]).toEqual([
    1,
    expect.stringMatching(new RegExp(`\\bhost-1: .*\\b${found.broken_at}\\b`)),
  ]);
}, 60_000);

test("records of a move name the other host's head, which reveals a rewritten chain without any anchor", async () => {
  await sql("ALTER TABLE roomd.audit_anchors DISABLE TRIGGER ALL; DELETE FROM roomd.audit_anchors");
  const { details } = (await two.ok("GET", "/v1/orgs/self/audit?event=room.moved_in")).items[0];
  for (const host of [one, two]) {
    const found = await verifyBoth(host);
    expect(found).toMatchObject({ ok: false, broken_at: details.head.seq });
    expect(chainOf(found, "host-1")).toMatchObject({ ok: false, broken_at: details.head.seq });
    expect(chainOf(found, "host-2")).toMatchObject({ ok: true });
    expect(found.contradicts).toBeUndefined();
  }
}, 60_000);

const checkOf = async (host: TestDaemon): Promise<Json> =>
  (await host.api("GET", "/health")).body.checks.find(({ id }: Json) => id === "audit");

async function whileAway<T>(host: TestDaemon, work: () => Promise<T>): Promise<T> {
  await host.end("SIGTERM");
  const done = await work();
  await host.serve();
  await service.knowEachOther();
  return done;
}

async function inData<T>(host: TestDaemon, work: (connection: Connection) => T): Promise<T> {
  const connection = openConnection(join(host.dataDir, "roomd.db"));
  try {
    return work(connection);
  } finally {
    connection.close();
  }
}

const headOf = (queries: Connection["queries"]): number =>
  Number(queries.all<Json>(`SELECT seq FROM audit_heads WHERE org_key = '${one.orgId}'`)[0].seq);

/** As an attacker with write access to the file does. */
function untie(connection: Connection): void {
  const triggers = connection.queries.all<Json>("SELECT name FROM sqlite_schema WHERE type = 'trigger'");
  for (const { name } of triggers) connection.execute(`DROP TRIGGER ${name}`);
}

function rewriteFrom({ queries, execute }: Connection, seq: number): void {
  const rows = queries.all<AuditRow>(
    `SELECT * FROM audit WHERE org_key = '${one.orgId}' AND seq >= ${seq} ORDER BY seq`,
  );
  let before = rows[0]?.prev_hash ?? "";
  for (const row of rows) {
    const details = row.seq === seq ? '{"forged":true}' : row.details;
    const { hash: _, ...rest } = { ...row, details, prev_hash: before };
    const hash = hashOf(rest);
    const set = `details = '${details.replaceAll("'", "''")}', prev_hash = '${before}', hash = '${hash}'`;
    execute(`UPDATE audit SET ${set} WHERE org_key = '${one.orgId}' AND seq = ${row.seq}`);
    before = hash;
  }
  execute(`UPDATE audit_heads SET hash = '${before}' WHERE org_key = '${one.orgId}'`);
}

/** With access to the database an attacker can change this file too. */
function forgetHeads(host: TestDaemon): void {
  rmSync(join(host.dataDir, "audit-heads.ndjson"), { force: true });
}
