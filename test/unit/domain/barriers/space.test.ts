/** How much barriers of a room may take: no room can fill the host's disk by the names that its barriers wait for. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { countSome, ROOM_START } from "../../../../daemon/domain/barriers/store.ts";
import { MAX_ROOM_BARRIERS_BYTES } from "../../../../shared/api/barriers.ts";
import { boundOf, longestTurn } from "../../../harness/event-loop/longest-turn.ts";
import { Rooms, uidOf } from "../fabric/rooms-fixture.ts";

let rooms: Rooms;
beforeEach(async () => {
  rooms = new Rooms();
  await rooms.call("first", "a", "agent_subscribe", { agent_id: "a", topics: [] });
});
afterEach(() => rooms[Symbol.asyncDispose]());

const MANY = ["a", ...Array.from({ length: 999 }, (_, at) => String(at).padStart(128, "x"))];
const arrive = (barrier_id: string, participants: string[] = MANY, parties = 1) =>
  rooms.codeOf("first", "a", "barrier_arrive", { barrier_id, participants, parties, timeout_ms: 0 });
const taken = () => countSome(rooms.database.queries, uidOf("first"), ROOM_START, 1_000_000).bytes;

/** Until no more is taken. */
async function fillUp(): Promise<void> {
  for (let count = 0; ; count++) {
    const code = await arrive(`b-${count}`);
    if (code === "quota_exceeded") return;
    expect(code).toBe("none");
  }
}

test("is limited, and a reused name replaces its old generations", async () => {
  await fillUp();
  expect(taken()).toBeLessThanOrEqual(MAX_ROOM_BARRIERS_BYTES);
  expect(taken()).toBeGreaterThan(MAX_ROOM_BARRIERS_BYTES - 450_000);
  // Each name retains 16 generations besides the newest.
  for (let generation = 1; generation <= 100; generation++) expect(await arrive("b-0", ["a"])).toBe("none");
  expect(await arrive("fits")).toBe("none");
});

test("is counted when a generation opens, so later arrivals are not refused", async () => {
  await rooms.call("first", "b", "agent_subscribe", { agent_id: "b", topics: [] });
  expect(await arrive("open", ["a", "b"], 2)).toBe("none");
  const arriving = (barrier_id: string, agent_id: string) =>
    rooms.codeOf("first", agent_id, "barrier_arrive", { barrier_id, agent_id, parties: 1000, timeout_ms: 0 });
  expect(await arriving("unnamed", "a")).toBe("none");
  const before = taken();
  await fillUp();
  const full = taken();
  expect(full).toBeGreaterThan(before);
  expect(await rooms.codeOf("first", "b", "barrier_arrive", { barrier_id: "open", timeout_ms: 0 })).toBe("none");
  expect(await arriving("unnamed", "b")).toBe("none");
  expect(taken()).toBe(full);
});

test("is the actual usage, also after a rollback of the room", async () => {
  const state = await rooms.take("first");
  await fillUp();
  await rooms.replace("first", state);
  expect(taken()).toBe(0);
  expect(await arrive("b-0")).toBe("none");
  await fillUp();
});

test("is released with the room", async () => {
  await fillUp();
  await rooms.barriers.forget(uidOf("first"));
  expect(await arrive("b-0")).toBe("none");
});

test("of 170,000 generations is counted in pieces, once for all waiting arrivals", async () => {
  await rooms.database.commit((queries) => {
    queries.run(sql`WITH RECURSIVE
      name(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM name WHERE n < 5000),
      generation(g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM generation WHERE g < 85000)
      INSERT INTO barriers
        SELECT ${uidOf("first")}, 'b-' || n, g, 'released', 1, NULL, '["a"]', '[]', '', ''
        FROM name, generation WHERE g <= 17
        UNION ALL SELECT ${uidOf("first")}, 'long', g, 'released', 1, NULL, '["a"]', '[]', '', '' FROM generation`);
  });
  const queries = rooms.database.queries;
  const whole = countSome(queries, uidOf("first"), ROOM_START, 1_000_000);
  const some = { names: 0, bytes: 0 };
  for (let after: typeof whole.upTo = ROOM_START; after !== null; ) {
    const { names, bytes, upTo } = countSome(queries, uidOf("first"), after, 1_000);
    Object.assign(some, { names: some.names + names, bytes: some.bytes + bytes });
    after = upTo;
  }
  expect(some).toEqual({ names: 5_001, bytes: whole.bytes });
  let codes: string[] = [];
  const longest = await longestTurn(async () => {
    codes = await Promise.all(Array.from({ length: 8 }, (_, n) => arrive(`new-${n}`, ["a"])));
  });
  expect(codes).toEqual(Array.from({ length: 8 }, () => "none"));
  // The count of names takes 20 ms in one statement, and so does the sum of bytes.
  expect(longest).toBeLessThan(boundOf(12));
  // The end of the room, which removes them some in each commit.
  const ending = await longestTurn(() => rooms.barriers.forget(uidOf("first")));
  console.log(`longest turn: ${ending.toFixed(1)} ms`);
  expect(ending).toBeLessThan(boundOf(20));
  expect(queries.all(sql`SELECT count(*) AS rest FROM barriers`)).toEqual([{ rest: 0 }]);
});
