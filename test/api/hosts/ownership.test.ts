/** Which host answers for a room after a host's data was set back: two daemons and a PostgreSQL. */
import { Database } from "bun:sqlite";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, NO_GUESTS, type TestDaemon } from "../../harness/daemon.ts";
import { freePort } from "../../harness/free-port.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;

beforeAll(async () => {
  service = await TestHosts.start(2, { env: NO_GUESTS });
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await service.knowEachOther();
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
}, 60_000);

const post = (host: TestDaemon, room: string, payload: string) =>
  host.api("POST", `/v1/rooms/${room}/messages`, { source: "a", destination: "b", payload });

async function read(host: TestDaemon, room: string): Promise<string[]> {
  const { items } = await host.ok("GET", `/v1/rooms/${room}/messages?after=0&limit=100`);
  return items.map(({ payload }: Json) => payload);
}

const answeredBy = ({ status, headers }: Awaited<ReturnType<typeof post>>) => [status, headers.get("x-roomd-host")];

/** A room of host-1 with a message, that host's data as they are then, and the room moved to host-2, with another message. */
async function movedAway(room: string): Promise<{ setBack(change?: (database: Database) => void): void; uid: string }> {
  const { room_uid: uid } = await one.ok("POST", "/v1/rooms", { room_id: room, host: "host-1" });
  for (const agent of ["a", "b"]) {
    await one.ok("PUT", `/v1/rooms/${room}/agents/${agent}/subscriptions`, { topics: ["t"] });
  }
  expect((await post(one, room, "before")).status).toBe(202);
  await one.end("SIGTERM");
  const backup = join(one.home, `backup-${room}`);
  cpSync(one.dataDir, backup, { recursive: true });
  await one.serve();
  await service.knowEachOther();
  await one.ok("POST", `/v1/rooms/${room}/move`, { host: "host-2" });
  expect((await post(two, room, "after the move")).status).toBe(202);
  return {
    uid,
    setBack: (change) => {
      rmSync(one.dataDir, { recursive: true });
      cpSync(backup, one.dataDir, { recursive: true });
      if (!change) return;
      using database = new Database(join(one.dataDir, "roomd.db"));
      change(database);
    },
  };
}

describe("a host that was rolled back to before a room moved away", { timeout: 120_000 }, () => {
  test("forwards calls once it learns of the move, although it had started without the shared database", async () => {
    const { setBack } = await movedAway("older");
    await one.end("SIGTERM");
    setBack();
    await service.postgres.stop();
    await one.serve();
    // Reads may be stale; no write is acknowledged that could be lost.
    expect((await one.api("GET", "/v1/rooms/older")).status).toBe(200);
    const { status, headers, body } = await post(one, "older", "to be lost");
    expect([status, body.code, headers.get("retry-after")]).toEqual([503, "cluster_unavailable", "1"]);
    expect(await checkOf(one, "membership")).toBe("warn");
    // A running host continues.
    expect((await post(two, "older", "without the directory")).status).toBe(202);
    await service.postgres.begin();
    await until("host-1 follows the directory", async () =>
      [201, 409].includes((await one.api("POST", "/v1/rooms", { room_id: "follows", host: "host-1" })).status),
    );
    expect(answeredBy(await post(one, "older", "after the return"))).toEqual([202, "host-2"]);
    for (const host of [one, two]) {
      expect(await read(host, "older")).toEqual([
        ...["before", "after the move", "without the directory", "after the return"],
      ]);
    }
    await until(
      "the copy is retired",
      () => one.logged({ level: "error", host: "host-2" }).length > 0 && hasRetired("older"),
    );
    expect(answeredBy(await post(one, "older", "last"))).toEqual([202, "host-2"]);
  });

  test("and the other host both freeze the room if the epochs are equal; an operator chooses", async () => {
    const { setBack, uid } = await movedAway("equal");
    await one.end("SIGTERM");
    setBack((database) => database.run("UPDATE rooms SET epoch = 2 WHERE room_id = 'equal'"));
    await one.serve();
    for (const host of [one, two]) {
      await until("the room is frozen", async () => {
        const { status, body } = await post(host, "equal", "to nobody");
        return status === 409 && body.code === "invalid_state";
      });
      const { status, body } = await host.api("GET", "/v1/rooms/equal");
      expect([status, body.details]).toEqual([409, { hosts: ["host-2", "host-1"] }]);
    }
    const kept = await two.cli(["cluster", "keep", uid]);
    expect([kept.status, kept.stderr]).toEqual([0, ""]);
    for (const host of [one, two]) {
      await until("host-2 answers", async () => answeredBy(await post(host, "equal", "kept")).join() === "202,host-2");
    }
    await until("the other copy is retired", () => hasRetired("equal"));
    expect(await read(one, "equal")).toEqual(["before", "after the move", "kept", "kept"]);
    expect((await two.cli(["cluster", "keep", uid])).status).not.toBe(0);
  });
});

describe("a backup of a host that is restored while the host runs", { timeout: 120_000 }, () => {
  test("replaces the host once an operator confirms it; the other is then no longer a member", async () => {
    await two.ok("POST", "/v1/rooms", { room_id: "backed-up", host: "host-2" });
    const file = join(two.home, "backup.tar");
    expect((await two.cli(["backup", file])).status).toBe(0);
    const home = join(two.home, "restored");
    const [ROOMD_DATA_DIR, ROOMD_RUNTIME_DIR] = [join(home, "data"), join(home, "run")];
    mkdirSync(ROOMD_RUNTIME_DIR, { recursive: true });
    const there = { ROOMD_DATA_DIR, ROOMD_RUNTIME_DIR, ROOMD_CLUSTER_LISTEN: `127.0.0.1:${await freePort()}` };
    const restored = await two.cli(["restore", file], undefined, there);
    expect(restored.stdout).toContain("cluster rejoin");
    const served = await two.cli(["serve"], undefined, there);
    expect([served.status === 0, served.stderr]).toEqual([false, expect.stringContaining("cluster rejoin")]);
    const refused = await two.cli(["cluster", "rejoin"], undefined, there);
    expect([refused.status === 0, refused.stderr]).toEqual([false, expect.stringContaining("host-2")]);
    expect((await two.api("GET", "/v1/rooms/backed-up")).status).toBe(200);
    const forced = await two.cli(["cluster", "rejoin", "--force"], undefined, there);
    expect(forced.status).toBe(0);
    await until("the check of the membership fails", async () => (await checkOf(two, "membership")) === "fail");
    expect((await two.api("PATCH", "/v1/rooms/backed-up", { labels: { a: "b" } })).body.code).toBe("not_a_member");
    await two.end("SIGTERM");
    Object.assign(two.env, there);
    await two.serve();
    await service.knowEachOther();
    const { status, headers } = await one.api("PATCH", "/v1/rooms/backed-up", { labels: { a: "b" } });
    expect([status, headers.get("x-roomd-host")]).toEqual([200, "host-2"]);
    expect((await two.cli(["cluster", "rejoin"])).status).not.toBe(0);
  });
});

describe("a removed host that still runs", { timeout: 60_000 }, () => {
  test("refuses writes, and reads of a room whose name belongs to another by now", async () => {
    for (const room of ["taken", "free"]) await two.ok("POST", "/v1/rooms", { room_id: room, host: "host-2" });
    expect((await one.cli(["cluster", "remove", "host-2", "--force"])).status).toBe(0);
    await until("the name is free", async () =>
      [201].includes((await one.api("POST", "/v1/rooms", { room_id: "taken", host: "host-1" })).status),
    );
    await until(
      "the check of the membership fails on host-2",
      async () => (await checkOf(two, "membership")) === "fail",
    );
    // The name was taken by a later change.
    await until("host-2 knows the other room", async () => (await two.api("GET", "/v1/rooms/taken")).status === 503);
    for (const request of [
      () => post(two, "taken", "to nobody"),
      () => post(two, "free", "to nobody"),
      () => two.api("POST", `/v1/orgs/${two.orgId}/keys`, { name: "k", scopes: ["rooms:read"] }),
      () => two.api("GET", "/v1/rooms/taken"),
    ]) {
      const { status, body } = await request();
      expect([status, body.code]).toEqual([503, "not_a_member"]);
    }
    expect((await two.api("GET", "/v1/rooms/free")).status).toBe(200);
    expect(await (await fetch(`${two.url}/metrics`)).text()).toContain("\nroomd_host_is_member 0\n");
    const doctor = await two.cli(["doctor", "--json"]);
    const { checks } = JSON.parse(doctor.stdout) as { checks: { id: string; status: string }[] };
    expect(checks.find(({ id }) => id === "membership")?.status).toBe("fail");
    // The tests' database does without fsync.
    expect(checks.find(({ id }) => id === "directory")?.status).toBe("warn");
  });
});

async function checkOf(host: TestDaemon, id: string): Promise<string> {
  const { body } = await host.api("GET", "/health");
  return body.checks.find((each: { id: string }) => each.id === id).status;
}

/** Whether host-1 has the room no more. */
function hasRetired(room: string): boolean {
  using database = new Database(join(one.dataDir, "roomd.db"), { readonly: true });
  return database.query("SELECT 1 FROM rooms WHERE room_id = ? AND state = 'destroyed'").get(room) !== null;
}
