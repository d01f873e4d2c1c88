/** Lists over all hosts, through any of them, and while one of them is unresponsive. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectMcp } from "../../harness/clients/mcp-client.ts";
import { SshClient, sshPort } from "../../harness/clients/ssh-client.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { until, untilState } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "../sandboxes/described-template.ts";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;
const ROOMS = ["a", "b", "c", "d", "e"];
const made: Json[] = [];

beforeAll(async () => {
  service = await TestHosts.start(2, {
    env: { ROOMD_ACCELERATION: "tcg", ROOMD_HOST_QEMU: "/bin/false" },
  });
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  for (const host of [one, two]) describeTemplate(host);
  await service.knowEachOther();
  // In turn, so that the order of the list goes from host to host.
  for (const [index, room_id] of ROOMS.entries()) {
    const host = `host-${(index % 2) + 1}`;
    made.push(await one.ok("POST", "/v1/rooms", { room_id, host, labels: { on: host } }));
  }
  for (const agent of ["x", "y"]) {
    await one.ok("PUT", `/v1/rooms/b/agents/${agent}/subscriptions`, { topics: ["t"] });
  }
  for (const host of [one, two]) {
    await host.ok("POST", "/v1/rooms/b/messages", { source: "x", destination: "y", payload: 1 });
  }
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

const namesOf = ({ items }: Json): string[] => items.map(({ room_id }: Json) => room_id);

async function pages(host: TestDaemon, path: string): Promise<Json[]> {
  const all: Json[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: Json = await host.ok("GET", path + (cursor && `&cursor=${encodeURIComponent(cursor)}`));
    all.push(...page.items);
    cursor = page.next_cursor;
  }
  return all;
}

describe("from either host", () => {
  test("rooms of all hosts are listed in one order", async () => {
    for (const host of [one, two]) {
      const list = await host.ok("GET", "/v1/rooms");
      expect(list.items.map(({ room_uid }: Json) => room_uid)).toEqual(made.map(({ room_uid }) => room_uid));
      expect(list.items.map((each: Json) => each.host)).toEqual(["host-1", "host-2", "host-1", "host-2", "host-1"]);
      expect([list.next_cursor, list.warnings]).toEqual([null, undefined]);
      expect(namesOf(await host.ok("GET", "/v1/rooms?label=on:host-2"))).toEqual(["b", "d"]);
    }
  });

  test("pages have every room once, and a cursor is valid at either host", async () => {
    for (const limit of [1, 2, 3]) {
      for (const host of [one, two]) {
        expect((await pages(host, `/v1/rooms?limit=${limit}`)).map(({ room_id }) => room_id)).toEqual(ROOMS);
        const newest = await pages(host, `/v1/rooms?order=desc&limit=${limit}`);
        expect(newest.map(({ room_id }) => room_id)).toEqual(ROOMS.toReversed());
      }
    }
    const first = await one.ok("GET", "/v1/rooms?limit=3");
    expect(namesOf(await two.ok("GET", `/v1/rooms?limit=3&cursor=${first.next_cursor}`))).toEqual(["d", "e"]);
    expect((await two.problem("GET", "/v1/rooms?cursor=x.y")).code).toBe("invalid_cursor");
  });

  test("a key that is bound to rooms sees only those", async () => {
    const bound = { name: "bound", scopes: ["rooms:read"], room_ids: ["b", "c"] };
    const { key } = await one.ok("POST", "/v1/orgs/self/keys", bound);
    const headers = { authorization: `Bearer ${key}` };
    await until(
      "the other host knows the key",
      async () => (await two.api("GET", "/v1/me", undefined, headers)).status === 200,
    );
    for (const host of [one, two]) {
      expect(namesOf((await host.api("GET", "/v1/rooms", undefined, headers)).body)).toEqual(["b", "c"]);
    }
  });

  test("the room overview and current usage cover all hosts", async () => {
    for (const host of [one, two]) {
      expect((await pages(host, "/v1/overview/rooms?limit=2")).map(({ room_id }) => room_id)).toEqual(ROOMS);
      expect((await host.ok("GET", "/v1/top")).items).toEqual([]);
      expect(await host.ok("GET", "/v1/sandboxes")).toEqual({ items: [], next_cursor: null });
      expect((await host.ok("GET", "/v1/sandboxes?room_id=b")).items).toEqual([]);
      expect((await host.problem("GET", "/v1/sandboxes?room_id=none")).code).toBe("room_not_found");
      for (const room of ["a", "b"]) expect((await host.ok("GET", `/v1/top?room_id=${room}`)).items).toEqual([]);
      expect((await host.problem("GET", "/v1/top?room_id=none")).code).toBe("room_not_found");
    }
  });

  test("usage is summed over hosts", async () => {
    for (const host of [one, two]) {
      const usage = await host.ok("GET", "/v1/orgs/self/usage?group_by=room");
      expect([usage.rooms.active, usage.totals.messages]).toEqual([5, 2]);
      const { room_uid } = made[1] as Json;
      const group = usage.groups.find(({ id }: Json) => id === room_uid);
      expect(group).toMatchObject({ name: "b", totals: { messages: 2 } });
    }
  });

  test("the credit ledger has a grant once", async () => {
    const grant = ["org", "credits", "--org", one.orgId, "--grant", "5"];
    const { status } = await one.cli(grant);
    expect(status).toBe(0);
    const listed = async (host: TestDaemon) => await pages(host, "/v1/orgs/self/credits?limit=1");
    await until(
      "both hosts list the grant",
      async () => (await listed(two)).length === 1 && (await listed(one)).length === 1,
    );
    expect(await listed(one)).toEqual(await listed(two));
  });

  test("an ID is located on its host, and an unknown one is not found", async () => {
    for (const host of [one, two]) {
      for (const { room_id, room_uid } of made) {
        expect(await host.ok("GET", `/v1/locate/${room_uid}`)).toMatchObject({ type: "room", room_id });
      }
      expect((await host.problem("GET", "/v1/locate/rom_01ARZ3NDEKTSV4RRFFQ69G5FAV")).code).toBe("id_not_found");
    }
  });

  test("the audit of all hosts is listed by time, every record once", async () => {
    for (const host of [one, two]) {
      for (const order of ["asc", "desc"]) {
        const all = await pages(host, `/v1/orgs/self/audit?event=room.created&limit=2&order=${order}`);
        const rooms = order === "asc" ? ROOMS : ROOMS.toReversed();
        expect(all.map(({ room_id }) => room_id)).toEqual(rooms);
      }
      const whole = await pages(host, "/v1/orgs/self/audit?limit=7");
      expect(new Set(whole.map(({ audit_id }) => audit_id)).size).toBe(whole.length);
      const times = whole.map(({ at }) => at);
      expect(times).toEqual(times.toSorted().toReversed());
      const summary = await host.ok("GET", "/v1/orgs/self/audit/summary?event=room.created");
      expect(summary).toMatchObject({ total: 5, events: [{ event: "room.created", count: 5 }] });
      expect(summary.text).toContain("5 records");
    }
  });

  test("the chains of all hosts are verified", async () => {
    for (const host of [one, two]) {
      const verdict = await host.ok("GET", "/v1/orgs/self/audit/verify");
      expect([verdict.ok, verdict.broken_at, verdict.warnings]).toEqual([true, null, undefined]);
      expect(verdict.hosts.map((each: Json) => [each.host, each.ok]).sort()).toEqual([
        ["host-1", true],
        ["host-2", true],
      ]);
    }
  });

  test("a fork is created on the host of its room", async () => {
    for (const host of [one, two]) {
      const fork = await host.api("POST", "/v1/rooms/b/fork", { room_id: "b" });
      expect([fork.body.code, fork.headers.get("x-roomd-host")]).not.toContain("room_not_found");
      expect(fork.headers.get("x-roomd-host")).toBe("host-2");
    }
  });

  test("tools return the same", async () => {
    for (const host of [one, two]) {
      const mcp = await connectMcp(host, { key: one.apiKey });
      expect(namesOf((await mcp.call("room_list", { limit: 4 })).result)).toEqual(ROOMS.slice(0, 4));
      const audit = await mcp.call("org_audit_list", { event: "room.created" });
      expect(audit.result.summary.total).toBe(5);
      const raw = await mcp.call("org_audit_list", { event: "room.created", raw: true });
      expect(raw.result.items).toHaveLength(5);
      await mcp.close();
    }
  });
});

/** The row of an exposed port, of a sandbox without a guest: a request to the port gets that as its error. */
async function expose(host: TestDaemon, room: string): Promise<string> {
  const sandbox = { agent_id: "worker", guest_cid: 9100 + (room.codePointAt(0) ?? 0), memory_mib: DESCRIBED_MIN_MIB };
  await host.api("POST", `/v1/rooms/${room}/sandboxes/from-template`, sandbox);
  await untilState(host, room, "worker", "failed");
  using rows = new Database(join(host.dataDir, "roomd.db"));
  rows.run("PRAGMA busy_timeout = 5000");
  rows.run("UPDATE sandboxes SET state = 'paused'");
  const label = `web-${room}-${Math.random().toString(36).slice(2)}`;
  rows.run(
    `INSERT INTO ports (label, port, visibility, wish, created_at, expires_at, sandbox_id, org_id, room_uid, agent_id)
     SELECT ?, 8000, 'private', NULL, created_at, NULL, sandbox_id, org_id, room_uid, agent_id FROM sandboxes`,
    [label],
  );
  return label;
}

describe("exposed ports", () => {
  test.each([
    ["host-1", "a", () => [one, two]],
    ["host-2", "b", () => [two, one]],
  ])("on %s are reachable through the other host, only with their own token", async (name, room, hosts) => {
    const [owner, other] = hosts() as [TestDaemon, TestDaemon];
    const label = await expose(owner, room);
    const [{ token }] = (await other.ok("GET", `/v1/rooms/${room}/sandboxes/worker/ports`)).items;
    for (const host of [owner, other]) {
      const request = async (headers = {}) => {
        const answer = await fetch(`${host.url}/p/${label}/x`, { headers });
        return [answer.status, ((await answer.json()) as Json).code, answer.headers.get("x-roomd-host")];
      };
      expect(await request()).toEqual([401, "missing_credentials", name]);
      expect(await request({ authorization: `Bearer ${one.apiKey}` })).toEqual([401, "missing_credentials", name]);
      expect(await request({ "x-port-token": "ptk_wrong" })).toEqual([401, "invalid_api_key", name]);
      expect(await request({ "x-port-token": token })).toEqual([502, "guest_unreachable", name]);
    }
    const none = await fetch(`${other.url}/p/${label}x/`);
    expect([none.status, none.headers.get("x-roomd-host")]).toEqual([404, name === "host-1" ? "host-2" : "host-1"]);
    expect(await other.ok("GET", `/v1/locate/${label}`)).toMatchObject({ type: "port", room_id: room });
    await owner.end("SIGKILL");
    const response = await fetch(`${other.url}/p/${label}/`);
    expect([response.status, ((await response.json()) as Json).code]).toEqual([503, "host_unreachable"]);
    await owner.serve();
    await until("the host is back", async () => !(await other.ok("GET", "/v1/rooms")).warnings);
  });
});

describe("SSH", () => {
  test("a login through another host is decided and audited by the room's host", async () => {
    using client = new SshClient(0);
    await one.ok("POST", "/v1/orgs/self/ssh-keys", { public_key: client.publicKey });
    const bound = await one.ok("POST", "/v1/orgs/self/keys", { name: "c", scopes: ["terminal"], room_ids: ["c"] });
    for (const [entry, owner, room] of [
      [two, one, "a"],
      [one, two, "b"],
    ] as const) {
      client.port = sshPort(entry);
      for (const [user, password] of [
        [`none@${room}`, one.apiKey],
        ["worker@nowhere", one.apiKey],
        [`worker@${room}`, `${one.apiKey}x`],
        [`worker@${room}`, bound.key],
        [`worker@${room}`, `sat_${"A".repeat(43)}`],
      ] as const) {
        const refused = await client.sshByPassword(user, password, ["true"]);
        expect([refused.status, refused.stderr]).toEqual([255, expect.stringContaining("Permission denied")]);
      }
      const [record] = (await owner.ok("GET", `/v1/rooms/${room}/audit?event=ssh.login`)).items;
      expect(record).toMatchObject({ source: "ssh", ip: "127.0.0.1", error_code: "sandbox_not_found" });
    }
  });
});

describe("while a host is down", () => {
  test.each([
    ["host-2", () => [two, one]],
    ["host-1", () => [one, two]],
  ])("%s: its rooms are still listed, with a warning", async (name, hosts) => {
    const [stopped, left] = hosts() as [TestDaemon, TestDaemon];
    await stopped.end("SIGKILL");
    const startedAt = performance.now();
    const list = await left.ok("GET", "/v1/rooms");
    expect(performance.now() - startedAt).toBeLessThan(2500);
    expect(list.items.map(({ room_uid }: Json) => room_uid)).toEqual(made.map(({ room_uid }) => room_uid));
    for (const room of list.items) {
      expect(room.state).toBe("active");
      expect(room.status.reason === "host_unreachable").toBe(room.host === name);
      expect(room.warnings.length > 0).toBe(room.host === name);
    }
    expect(list.warnings).toEqual([expect.stringContaining(name)]);
    for (const command of ["list", "overview"]) {
      const { stdout, stderr } = await left.cli(["room", command]);
      expect(stdout.match(/host silent/g)).toHaveLength(list.items.filter(({ host }: Json) => host === name).length);
      expect(stderr).toContain(name);
    }
    expect((await left.cli(["audit", "verify"])).stderr).toContain(name);
    expect((await pages(left, "/v1/rooms?limit=2")).map(({ room_id }) => room_id)).toEqual(ROOMS);
    expect(namesOf(await left.ok("GET", `/v1/rooms?label=on:${name}`))).toHaveLength(name === "host-1" ? 3 : 2);
    expect(namesOf(await left.ok("GET", "/v1/rooms?state=destroyed"))).toEqual([]);
    const overview = await left.ok("GET", "/v1/overview/rooms");
    expect(namesOf(overview)).toEqual(ROOMS);
    expect(overview.warnings).toHaveLength(1);
    for (const path of ["usage", "audit", "audit/summary", "audit/verify"]) {
      expect((await left.ok("GET", `/v1/orgs/self/${path}`)).warnings.join()).toContain(name);
    }
    const there = made.find(({ host }) => host === name) as Json;
    expect((await left.problem("GET", `/v1/locate/${there.room_uid}`)).code).toBe("host_unreachable");
    await stopped.serve();
    await until("the host is back", async () => !(await left.ok("GET", "/v1/rooms")).warnings);
  });

  test("a stopped host delays a list by a second, once", async () => {
    process.kill(two.pid, "SIGSTOP");
    const startedAt = performance.now();
    expect((await one.ok("GET", "/v1/rooms")).warnings).toHaveLength(1);
    expect(performance.now() - startedAt).toBeLessThan(2500);
    const again = performance.now();
    expect((await one.ok("GET", "/v1/rooms")).warnings).toHaveLength(1);
    expect(performance.now() - again).toBeLessThan(900);
    process.kill(two.pid, "SIGCONT");
    await until("the host is back", async () => !(await one.ok("GET", "/v1/rooms")).warnings);
  });
});
