/** Barriers on a daemon without guests: the awaited agents, the possible ends of a generation, and that each generation ends once. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, type Json, TestDaemon } from "../../harness/daemon.ts";
import { untilState } from "../../harness/guests.ts";
import { until } from "../calls.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "../sandboxes/described-template.ts";

let daemon: TestDaemon;
let count = 0;
let cid = 9100;

beforeAll(async () => {
  daemon = await TestDaemon.start({
    // The first sandbox is held before its guest is started, until SIGUSR2; then it fails, for want of a template's files.
    env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0", ROOMD_FAULT_POINT: "sandbox.accepted=stall" },
  });
  describeTemplate(daemon);
});
afterAll(() => daemon.stop());

async function roomOf() {
  const id = `barriers-${++count}`;
  await daemon.room(id);
  const path = `/v1/rooms/${id}`;
  return {
    id,
    path,
    arrive: (body: object): Promise<Answer> => daemon.api("POST", `${path}/barriers`, { barrier_id: "b", ...body }),
    get: (): Promise<Json> => daemon.ok("GET", `${path}/barriers/b`),
    waiting: (agents: number): Promise<Json> =>
      until(
        async () => (await daemon.ok("GET", `${path}/agents`)).items,
        (items: Json[]) => items.filter(({ waiting_on }) => waiting_on.length > 0).length === agents,
      ),
    /** A sandbox that stays in creation until the test ends it. */
    sandbox: (agent_id: string): Promise<Answer> =>
      daemon.api("POST", `${path}/sandboxes/from-template?wait=none`, {
        agent_id,
        guest_cid: cid++,
        memory_mib: DESCRIBED_MIN_MIB,
      }),
  };
}

describe("a barrier", () => {
  test("releases all waiters when the last participant arrives, each generation once", async () => {
    const room = await roomOf();
    for (const generation of [1, 2, 3]) {
      const first = ["a", "b"].map((agent_id) => room.arrive({ agent_id, parties: 3 }));
      await room.waiting(2);
      const last = await room.arrive({ agent_id: "c" });
      const all = [...(await Promise.all(first)), last];
      expect(all.map(({ status }) => status)).toEqual([200, 200, 200]);
      for (const { body } of all) {
        expect(body).toMatchObject({ generation, state: "released", parties: 3, missing: [] });
        expect(body.arrived.toSorted()).toEqual(["a", "b", "c"]);
      }
      expect(new Set(all.map(({ body }) => body.released_at)).size).toBe(1);
    }
  });

  test("accepts several arrivals in one call, also as JSON text", async () => {
    const room = await roomOf();
    expect((await room.arrive({ arrivals: ["a", "b"] })).body).toMatchObject({ state: "released", parties: 2 });
    const half = await room.arrive({ arrivals_json: '["a","b"]', parties: 3, timeout_ms: 0 });
    expect(half).toMatchObject({ status: 202, body: { generation: 2, state: "waiting", released_at: null } });
    expect((await room.arrive({ agent_id: "c" })).body).toMatchObject({ generation: 2, state: "released" });
  });

  test("times out with the missing participants; the arrival stays recorded, and arriving again is idempotent", async () => {
    const room = await roomOf();
    const participants = ["a", "b"];
    const late = await room.arrive({ agent_id: "a", participants, timeout_ms: 50 });
    expect(late.body).toMatchObject({
      status: 409,
      code: "barrier_timeout",
      details: { generation: 1, arrived: ["a"], missing: ["b"] },
    });
    const again = room.arrive({ agent_id: "a", timeout_ms: 20_000 });
    await room.waiting(1);
    expect((await room.get()).arrived).toEqual(["a"]);
    expect((await room.arrive({ agent_id: "b" })).body.generation).toBe(1);
    expect((await again).body).toMatchObject({ generation: 1, state: "released" });
    // An agent that missed the release queries it by number, which opens no new generation.
    expect((await room.arrive({ agent_id: "a", generation: 1 })).body).toMatchObject({
      generation: 1,
      state: "released",
    });
    expect((await room.arrive({ agent_id: "a", generation: 7 })).body.code).toBe("barrier_not_found");
    expect((await room.get()).generation).toBe(1);
  });

  test("with fewer parties than participants makes nobody wait for a particular agent", async () => {
    const room = await roomOf();
    await daemon.ok("GET", `${room.path}/messages?agent_id=a`);
    const waiting = room.arrive({ agent_id: "a", participants: ["a", "b", "c"], parties: 2 });
    await room.waiting(1);
    const ask = { source: "b", destination: "a", wait_reply: true, timeout_ms: 50 };
    expect((await daemon.api("POST", `${room.path}/messages`, ask)).body.code).toBe("reply_timeout");
    await room.arrive({ agent_id: "c" });
    expect((await waiting).body).toMatchObject({ state: "released", arrived: ["a", "c"], missing: ["b"] });
  });

  test("keeps its arrivals across a kill of the daemon", async () => {
    const room = await roomOf();
    const cut = room.arrive({ agent_id: "a", parties: 2, timeout_ms: 20_000 }).catch(() => null);
    await room.waiting(1);
    await daemon.restart("SIGKILL");
    expect(await cut).toBeNull();
    expect((await room.arrive({ agent_id: "b" })).body).toMatchObject({ generation: 1, arrived: ["a", "b"] });
  });

  test("answers its waiters when it is cancelled, and starts the next generation", async () => {
    const room = await roomOf();
    const waiting = room.arrive({ agent_id: "a", parties: 2 });
    await room.waiting(1);
    expect((await daemon.ok("DELETE", `${room.path}/barriers/b`)).state).toBe("cancelled");
    expect((await waiting).body).toMatchObject({ status: 409, code: "barrier_cancelled" });
    expect((await room.arrive({ agent_id: "a", timeout_ms: 0 })).body.generation).toBe(2);
    const list = await daemon.ok("GET", `${room.path}/barriers`);
    expect(list.items).toMatchObject([{ barrier_id: "b", generation: 2, state: "waiting" }]);
  });

  test("answers all waiters when the room is destroyed", async () => {
    const room = await roomOf();
    const waits = ["a", "b", "c"].map((agent_id) => room.arrive({ agent_id, parties: 4 }));
    await room.waiting(3);
    await daemon.ok("DELETE", room.path);
    for (const wait of waits) expect((await wait).body).toMatchObject({ status: 409, code: "room_destroying" });
  });
});

describe("refuses", () => {
  test("a definition that differs from the barrier's", async () => {
    const room = await roomOf();
    await room.arrive({ agent_id: "a", participants: ["a", "b"], timeout_ms: 0 });
    for (const body of [{ parties: 3 }, { participants: ["b", "c"] }, { agent_id: "x" }]) {
      const refused = await room.arrive({ agent_id: "b", ...body });
      expect(refused.body).toMatchObject({ status: 409, code: "barrier_parties_mismatch" });
    }
    const tooMany = await room.arrive({ barrier_id: "c", arrivals: ["a", "b"], parties: 1 });
    expect(tooMany.body.code).toBe("barrier_parties_mismatch");
  });

  test.each([
    [{ agent_id: "a" }, "parties"],
    [{ agent_id: "a", parties: 3, participants: ["a", "b"] }, "parties"],
    [{ parties: 1 }, "agent_id"],
    [{ agent_id: "a", arrivals: ["b"], parties: 1 }, "arrivals"],
    [{ agent_id: "a", parties: 1, timeout_ms: 300_001 }, "timeout_ms"],
  ])("%j", async (body, field) => {
    const room = await roomOf();
    expect((await room.arrive(body)).body).toMatchObject({ status: 422, errors: [{ field }] });
  });

  test("a wait that would close a cycle over messages and barriers", async () => {
    const room = await roomOf();
    await daemon.ok("GET", `${room.path}/messages?agent_id=a`);
    const asks = daemon.api("POST", `${room.path}/messages`, {
      source: "b",
      destination: "a",
      wait_reply: true,
      timeout_ms: 3000,
    });
    await room.waiting(1);
    const refused = await room.arrive({ agent_id: "a", participants: ["a", "b"] });
    expect(refused.body).toMatchObject({ status: 409, code: "deadlock_detected", details: { cycle: ["a", "b", "a"] } });
    // The arrival was not kept; without waiting it may be made.
    expect((await daemon.api("GET", `${room.path}/barriers/b`)).status).toBe(404);
    expect((await room.arrive({ agent_id: "a", participants: ["a", "b"], timeout_ms: 0 })).status).toBe(202);
    expect((await asks).body.code).toBe("reply_timeout");
  });
});

test("a list of barriers with very many waiters is paged, and its pages together are complete", async () => {
  const room = await roomOf();
  const participants = Array.from({ length: 1000 }, (_, n) => `agent-${n}`);
  const names = Array.from({ length: 24 }, (_, n) => `b${String(n).padStart(2, "0")}`);
  for (const barrier_id of names) {
    expect((await room.arrive({ barrier_id, agent_id: "agent-0", participants, timeout_ms: 0 })).status).toBe(202);
  }
  const items: Json[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: Json = await daemon.ok("GET", `${room.path}/barriers?limit=1000${cursor && `&cursor=${cursor}`}`);
    expect(page.items.length).toBeLessThan(names.length / 2);
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  expect(items.map(({ barrier_id }) => barrier_id)).toEqual(names);
  expect(items.map(({ missing }) => missing.length)).toEqual(names.map(() => 999));
});

test("the end of an agent's sandbox answers its waiters immediately", async () => {
  const room = await roomOf();
  const { path } = room;
  const made = room.sandbox("worker");
  await untilState(daemon, room.id, "worker", "creating");
  const participants = ["a", "b", "worker"];
  const waits = ["a", "b"].map((agent_id) => room.arrive({ agent_id, participants, timeout_ms: 60_000 }));
  const unnamed = room.arrive({ barrier_id: "unnamed", agent_id: "d", parties: 2, timeout_ms: 60_000 });
  const request = daemon.api("POST", `${path}/messages`, {
    source: "c",
    destination: "worker",
    wait_reply: true,
    timeout_ms: 60_000,
  });
  const inbox = daemon.api("GET", `${path}/messages?agent_id=worker&topic=none&wait_ms=40000`);
  await room.waiting(5);
  process.kill(daemon.pid, "SIGUSR2");
  for (const wait of waits) {
    expect((await wait).body).toMatchObject({
      status: 409,
      code: "barrier_broken",
      details: { dead: ["worker"], missing: ["worker"] },
    });
  }
  expect((await request).body).toMatchObject({
    status: 409,
    code: "agent_unavailable",
    details: { agent_id: "worker" },
  });
  expect((await inbox).body.code).toBe("agent_unavailable");
  expect((await made).body.details.state).toBe("failed");
  const send = await daemon.api("POST", `${path}/messages`, { source: "a", destination: "worker" });
  expect(send.body.code).toBe("agent_unavailable");
  const late = await room.arrive({ agent_id: "a", participants });
  expect(late.body).toMatchObject({ code: "barrier_broken", details: { generation: 2 } });
  // An arrival that names no participants keeps waiting.
  expect((await daemon.ok("GET", `${path}/barriers/unnamed`)).state).toBe("waiting");
  await daemon.ok("DELETE", path);
  expect((await unnamed).body.code).toBe("room_destroying");
});
