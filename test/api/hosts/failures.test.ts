/** Invariants during failures of a cluster: three daemons, and a PostgreSQL that is killed, stopped, disconnected, replaced. */
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { SshClient, sshPort } from "../../harness/clients/ssh-client.ts";
import type { TestDaemon } from "../../harness/daemon.ts";
import { freePort } from "../../harness/free-port.ts";
import { shortOrLong, until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

/** Upper bound for an error of a call that waits for the directory; a round times out after five seconds. */
const BOUND_MS = 8_000;
/** Timeout on a busy machine for steps that normally take a moment. */
const BUSY_MS = 40_000;
const stopped = shortOrLong("milliseconds without PostgreSQL, or of a stopped daemon", 2_000, 60_000);
/** Longer than a lease. */
const paused = shortOrLong("milliseconds of a daemon that is stopped for longer than its lease", 0, 25_000);

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;
let three: TestDaemon;

beforeAll(async () => {
  service = await TestHosts.start(2, {}, { network: true });
  await service.add({ env: { ROOMD_CLUSTER_URL: service.postgres.secondUrl } });
  [one, two, three] = service.hosts as [TestDaemon, TestDaemon, TestDaemon];
  await service.knowEachOther();
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
}, 60_000);

/** Removes the leftovers of a failed test before the next one. */
afterEach(async ({ task }) => {
  if (task.result?.state !== "fail") return;
  await service.postgres.join().catch(() => {});
  if (!service.postgres.runs) await service.postgres.begin();
  for (const host of service.hosts) if (host.runs) process.kill(host.pid, "SIGCONT");
});

async function statesAt(host: TestDaemon): Promise<string[]> {
  const { items } = await host.ok("GET", "/v1/hosts");
  return items.map((each: { host: string; state: string }) => `${each.host} ${each.state}`).sort();
}

const create = (host: TestDaemon, room_id: string, at: string) => host.api("POST", "/v1/rooms", { room_id, host: at });

async function made(host: TestDaemon, roomId: string, at: string): Promise<string> {
  const { status, body } = await create(host, roomId, at);
  if (status !== 201) throw new Error(`${roomId}: ${status} ${JSON.stringify(body)}`);
  return body.room_uid;
}

/** The whole service has recovered: each host can create a room anywhere, and the others find it. */
async function isWhole(name: string): Promise<void> {
  for (const [index, host] of service.hosts.entries()) {
    const roomId = `${name}-${index + 1}`;
    await until(`room ${roomId} is created`, async () =>
      [201, 409].includes((await create(host, roomId, `host-${index + 1}`)).status),
    );
    for (const other of service.hosts) expect((await other.api("GET", `/v1/rooms/${roomId}`)).status).toBe(200);
  }
}

/** Refused soon with cluster_unavailable and a Retry-After. */
async function expectUnavailable(
  request: () => Promise<{ status: number; headers: Headers; body: { code?: string } }>,
  codes = ["cluster_unavailable"],
) {
  const startedAt = performance.now();
  const { status, headers, body } = await request();
  expect([status, codes]).toEqual([503, expect.arrayContaining([body.code])]);
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  expect(performance.now() - startedAt).toBeLessThan(BOUND_MS);
}

/** The placements and the usage in the directory agree. */
async function expectSettled(): Promise<void> {
  await until("usage equals the rooms", async () => {
    const rooms = await service.postgres.sql(
      `SELECT r.host_id, r.n = coalesce(u.n, 0) FROM
         (SELECT "row" ->> 'host_id' AS host_id, count(*) AS n FROM roomd.rows WHERE tbl = 'placements' AND "row" IS NOT NULL GROUP BY 1) r
         LEFT JOIN (SELECT "row" ->> 'host_id' AS host_id, sum(("row" ->> 'rooms')::int) AS n FROM roomd.rows
                     WHERE tbl = 'org_use' AND "row" IS NOT NULL GROUP BY 1) u USING (host_id) ORDER BY 1`,
    );
    return rooms.split("\n").every((line) => line.endsWith("|t"));
  });
}

/** The room's host works without the directory. */
async function expectGoesOn(host: TestDaemon, roomId: string): Promise<void> {
  await host.ok("PUT", `/v1/rooms/${roomId}/agents/b/subscriptions`, { topics: ["t"] });
  const sent = await host.ok("POST", `/v1/rooms/${roomId}/messages`, {
    ...{ source: "b", destination: "b", payload: { n: 1 } },
  });
  const received = await host.ok("GET", `/v1/rooms/${roomId}/messages?agent_id=b&after=${sent.seq - 1}`);
  expect(received.items.map((each: { message_id: string }) => each.message_id)).toContain(sent.message_id);
  const put = await fetch(`${host.url}/v1/rooms/${roomId}/drive/files/f.txt`, {
    method: "PUT",
    headers: { authorization: `Bearer ${host.apiKey}` },
    body: "content",
  });
  expect(put.status).toBeLessThan(300);
}

describe("PostgreSQL", { timeout: 120_000 }, () => {
  test("is killed and started: rooms are unaffected, and rooms can be created once it is back", async () => {
    await made(one, "restart", "host-1");
    for (const other of [two, three])
      await until(
        "the other hosts know the room",
        async () => (await other.api("GET", "/v1/rooms/restart")).status === 200,
      );
    let isOver = false;
    const answers = new Set<string>();
    const asks = [one, two, three].map(async (host) => {
      while (!isOver) {
        const { status, body } = await host.api("GET", "/v1/rooms/restart");
        // On a busy machine the room's host may be unresponsive to the others for a second.
        if (host === one || body.code !== "host_unreachable") answers.add(`${status} ${body.code ?? ""}`.trim());
      }
    });
    await service.postgres.kill();
    await expectUnavailable(() => create(one, "restart-new", "host-1"));
    await service.postgres.begin();
    await until("a room is created", async () => (await create(two, "restart-new", "host-2")).status === 201);
    isOver = true;
    await Promise.all(asks);
    expect([...answers]).toEqual(["200"]);
    await isWhole("restarted");
  });

  test("is unavailable: rooms continue, shared state is read-only, and rooms destroyed since then are reconciled", async () => {
    await made(one, "away", "host-1");
    await made(two, "ends", "host-2");
    await until("the other host knows the room", async () => (await three.api("GET", "/v1/rooms/away")).status === 200);
    await service.postgres.stop();
    const until_ms = performance.now() + stopped;
    await expectUnavailable(() => create(one, "away-new", "host-1"));
    await expectUnavailable(() => create(two, "away-new", "host-1"));
    await expectUnavailable(() => one.api("POST", `/v1/orgs/${one.orgId}/keys`, { name: "k", scopes: ["rooms:read"] }));
    const asOperator = { authorization: `Bearer ${one.operatorKey}` };
    await expectUnavailable(() => three.api("POST", "/v1/orgs", { name: "new" }, asOperator));
    await two.ok("DELETE", "/v1/rooms/ends");
    do for (const host of [one, three]) await expectGoesOn(host, "away");
    while (performance.now() < until_ms);
    await service.postgres.begin();
    await until("the name is free", async () => (await create(three, "ends", "host-3")).status === 201);
    await isWhole("back");
    await expectSettled();
  });

  test("is partitioned from one host that clients still reach: its rooms continue, and other hosts' views stay correct", async () => {
    await made(one, "cut", "host-3");
    const { key, key_id } = await one.ok("POST", `/v1/orgs/${one.orgId}/keys`, {
      name: "short",
      scopes: ["rooms:read"],
    });
    const request = async () =>
      (await fetch(`${three.url}/v1/me`, { headers: { authorization: `Bearer ${key}` } })).status;
    await until("the key is known", async () => (await request()) === 200);
    await service.postgres.cut("second");
    await one.ok("DELETE", `/v1/orgs/${one.orgId}/keys/${key_id}`);
    await expectUnavailable(() => create(three, "cut-new", "host-3"));
    // On a busy machine a host that waits for its database may be unresponsive to the others for that long.
    await expectUnavailable(() => create(one, "cut-new", "host-3"), ["cluster_unavailable", "host_unreachable"]);
    expect((await create(one, "cut-new", "host-2")).status).toBe(201);
    await expectUnavailable(() => three.api("GET", "/v1/rooms/cut-new"));
    for (const host of [three, two]) await expectGoesOn(host, "cut");
    await service.postgres.join();
    await until("the key is invalid on the other host", async () => (await request()) === 401);
    expect((await three.api("GET", "/v1/rooms/cut-new")).headers.get("x-roomd-host")).toBe("host-2");
    expect((await create(three, "cut-new", "host-3")).body.code).toBe("room_id_in_use");
    await isWhole("joined");
    await expectSettled();
  });
});

test("a host that is partitioned for longer than cluster.stale_after rejects all keys, if that is set", async () => {
  const strict = await service.add({
    env: { ROOMD_CLUSTER_URL: service.postgres.secondUrl, ROOMD_CLUSTER_STALE_AFTER: "2" },
  });
  try {
    const request = () => strict.api("GET", "/v1/me");
    await until("the key is known", async () => (await request()).status === 200);
    await service.postgres.cut("second");
    await until("the key is refused", async () => (await request()).status === 503);
    await expectUnavailable(request);
    using client = new SshClient(sshPort(strict));
    expect((await client.sshByPassword("worker@r", strict.apiKey, ["true"])).stderr).toContain("cluster.stale_after");
    // As shipped rooms go on.
    expect((await three.api("GET", "/v1/me")).status).toBe(200);
    await service.postgres.join();
    await until("the key is accepted again", async () => (await request()).status === 200);
  } finally {
    service.hosts.pop();
    await strict.stop();
    expect((await one.cli(["cluster", "remove", "host-4", "--force"])).status).toBe(0);
  }
}, 60_000);

describe("a host", { timeout: 120_000 }, () => {
  test.each([stopped, paused].filter((ms) => ms > 0))(
    "is stopped for %i ms: it is unresponsive, and catches up before it changes anything",
    async (ms) => {
      await service.knowEachOther();
      await made(one, `silent-${ms}`, "host-3");
      const { key, key_id } = await one.ok("POST", `/v1/orgs/${one.orgId}/keys`, {
        name: "short",
        scopes: ["rooms:read"],
      });
      const request = async () =>
        (await fetch(`${three.url}/v1/me`, { headers: { authorization: `Bearer ${key}` } })).status;
      await until("the key is known", async () => (await request()) === 200);
      process.kill(three.pid, "SIGSTOP");
      try {
        const startedAt = performance.now();
        const { status, body } = await one.api("GET", `/v1/rooms/silent-${ms}`);
        expect([status, body.code]).toEqual([503, "host_unreachable"]);
        expect(performance.now() - startedAt).toBeLessThan(6_000);
        await made(two, `taken-${ms}`, "host-2");
        await one.ok("DELETE", `/v1/orgs/${one.orgId}/keys/${key_id}`);
        expect((await create(two, `silent-${ms}`, "host-2")).body.code).toMatch(/room_id_in_use|host_unreachable/);
        const left = ms - (performance.now() - startedAt);
        await until("the time is over", () => performance.now() - startedAt > ms, Math.max(left, 0) + 10_000);
        if (ms > 20_000) expect(await statesAt(one)).toContain("host-3 unreachable");
      } finally {
        process.kill(three.pid, "SIGCONT");
      }
      expect((await create(three, `taken-${ms}`, "host-3")).body.code).toBe("room_id_in_use");
      // By the change that was refused it has caught up.
      expect(await request()).toBe(401);
      await until("the room answers", async () => (await one.api("GET", `/v1/rooms/silent-${ms}`)).status === 200);
      await isWhole(`resumed-${ms}`);
      // A host that was unresponsive for longer than its lease has to be seen again.
      await service.knowEachOther();
    },
  );

  test("runs on a copy of another's data: it is refused, and the original continues", async () => {
    const home = join(three.home, "copy");
    mkdirSync(join(home, "run"), { recursive: true });
    cpSync(three.dataDir, join(home, "data"), { recursive: true });
    const env = { ROOMD_DATA_DIR: join(home, "data"), ROOMD_RUNTIME_DIR: join(home, "run") };
    const listen = { ROOMD_CLUSTER_LISTEN: `127.0.0.1:${await freePort()}` };
    const { status, stderr } = await three.cli(["serve"], undefined, { ...env, ...listen });
    expect([status, stderr]).toEqual([expect.any(Number), expect.stringContaining("host-3")]);
    expect(status).not.toBe(0);
    await isWhole("original");
  });

  test("is killed and started: it is a member again immediately", async () => {
    await three.restart();
    expect((await create(three, "again", "host-3")).status).toBe(201);
  });

  test("has another version: its unknown fields are preserved, and it does not delay others", async () => {
    await service.postgres.sql(`UPDATE roomd.leases SET version = '0.0.1' WHERE host_id = 'host-2'`);
    await service.postgres.sql(`
      WITH next AS (UPDATE roomd.cluster SET seq = seq + 1 RETURNING seq),
           said AS (INSERT INTO roomd.changes SELECT seq, 'newer', 'host-2' FROM next)
      UPDATE roomd.rows SET "row" = "row" || '{"later": {"a": [1]}}', seq = next.seq FROM next
       WHERE tbl IN ('hosts', 'orgs') AND "row" IS NOT NULL`);
    await service.postgres.sql(`
      WITH next AS (UPDATE roomd.cluster SET seq = seq + 1 RETURNING seq),
           said AS (INSERT INTO roomd.changes SELECT seq, 'newest', 'host-2' FROM next)
      INSERT INTO roomd.rows SELECT 'things', '["a"]', '{"thing": "a"}', seq FROM next`);
    await isWhole("mixed");
    const { status } = await one.cli(["cluster", "drain", "host-2"]);
    expect(status).toBe(0);
    await one.cli(["cluster", "drain", "host-2", "--undo"]);
    const kept = await service.postgres.sql(
      `SELECT count(*) FROM roomd.rows WHERE tbl = 'hosts' AND "row" ? 'later' AND "row" ->> 'state' <> 'gone'`,
    );
    expect(kept).toBe("3");
  });
});

describe("a PostgreSQL that lost its last changes", { timeout: 120_000 }, () => {
  test("is authoritative: replicas are rebuilt, rooms are registered again, and names stay unique", async () => {
    await service.postgres.copy("older");
    await until(
      "the directory is followed again",
      async () => (await create(two, "after-copy", "host-2")).status !== 503,
    );
    const forgotten = await made(one, "forgotten", "host-1");
    const contested = await made(one, "contested", "host-1");
    const { key } = await one.ok("POST", `/v1/orgs/${one.orgId}/keys`, { name: "lost", scopes: ["rooms:read"] });
    process.kill(one.pid, "SIGSTOP");
    let winner: string;
    try {
      await service.postgres.replace("older");
      await until("the name is free", async () => (await create(two, "contested", "host-2")).status === 201);
      winner = (await two.ok("GET", "/v1/rooms/contested")).room_uid;
    } finally {
      process.kill(one.pid, "SIGCONT");
    }
    await until("the room is registered again", async () => {
      const { status, body } = await two.api("GET", "/v1/rooms/forgotten");
      return status === 200 && body.room_uid === forgotten;
    });
    expect((await three.ok("GET", "/v1/rooms/contested")).room_uid).toBe(winner);
    const names = await service.postgres.sql(
      `SELECT "row" ->> 'room_uid' FROM roomd.rows WHERE "row" ->> 'room_id' = 'contested'`,
    );
    expect(names).toBe(winner);
    // Its key was lost with the change that made it.
    for (const { url } of service.hosts) {
      const request = () => fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${key}` } });
      await until("the lost key is invalid", async () => (await request()).status === 401);
    }
    await until("the lost name is recorded", async () => {
      const { items } = await one.ok("GET", `/v1/orgs/${one.orgId}/audit?event=cluster.room_name_lost`);
      return items.some(
        (each: { room_uid: string; details: object }) =>
          each.room_uid === contested && JSON.stringify(each.details).includes(winner),
      );
    });
    await isWhole("lost");
  });
});

describe("a dead host", { timeout: 120_000 }, () => {
  test("keeps its rooms' names until it is removed, and is then rejected", async () => {
    await made(one, "dead", "host-3");
    await until("the other host knows the room", async () => (await two.api("GET", "/v1/rooms/dead")).status === 200);
    await three.end("SIGKILL");
    expect((await one.api("GET", "/v1/rooms/dead")).body.code).toBe("host_unreachable");
    expect((await create(two, "dead", "host-2")).body.code).toMatch(/room_id_in_use|host_unreachable/);
    const refused = await one.cli(["cluster", "remove", "host-3"]);
    expect([refused.status === 0, refused.stderr]).toEqual([false, expect.stringContaining("host-3")]);
    const removed = await one.cli(["cluster", "remove", "host-3", "--force", "--json"]);
    expect(removed.status).toBe(0);
    expect(JSON.parse(removed.stdout).rooms_lost).toContainEqual({ room_id: "dead", org_id: one.orgId });
    await until("the name is free", async () => (await create(two, "dead", "host-2")).status === 201);

    // It comes back with its old state.
    await three.serve();
    for (const at of ["host-3", "host-2"]) {
      // It finds that it is no longer a member, or another host reports it.
      expect([422, 503]).toContain((await create(three, "from-the-grave", at)).status);
    }
    await expectUnavailable(
      () => three.api("POST", `/v1/orgs/${one.orgId}/keys`, { name: "k", scopes: ["rooms:read"] }),
      ["not_a_member"],
    );
    const before = await service.postgres.sql("SELECT max(seq) FROM roomd.rows WHERE \"row\" ->> 'host_id' = 'host-3'");
    const closed = async () => {
      const { status, body } = await three.api("GET", "/v1/rooms/restarted-1");
      return status === 503 && body.code === "host_unreachable";
    };
    await until("the rooms of other hosts are closed", closed, BUSY_MS).catch(async (error: unknown) => {
      const { status, body } = await three.api("GET", "/v1/rooms/restarted-1");
      throw new Error(`it is answered ${status} ${JSON.stringify(body)}\n${three.log.slice(-3000)}`, { cause: error });
    });
    expect((await one.ok("GET", "/v1/rooms/dead")).host).toBe("host-2");
    const maxSeq = await service.postgres.sql("SELECT max(seq) FROM roomd.rows WHERE \"row\" ->> 'host_id' = 'host-3'");
    expect(maxSeq).toBe(before);
    expect(await service.postgres.sql("SELECT count(*) FROM roomd.leases WHERE host_id = 'host-3'")).toBe("0");
  });
});

test("no process remains", () => {
  expect(service.hosts.flatMap((host) => host.leftovers().filter((line) => line.startsWith("process")))).toEqual([]);
});
