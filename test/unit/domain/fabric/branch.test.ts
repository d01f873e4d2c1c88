/** Rooms that branch: in each line of history every message is processed once, whatever the agents have in their memory. */
import { sql } from "drizzle-orm";
import { afterEach, describe, expect, test } from "vitest";
import { wholly } from "../../../../daemon/core/loop/index.ts";
import { newRows } from "../../../../daemon/db/room-rows.ts";
import { Budget } from "../../../../daemon/domain/fabric/retention/budget.ts";
import { findOld, removalsOf } from "../../../../daemon/domain/fabric/retention/retention.ts";
import { bytesOfState } from "../../../../daemon/domain/fabric/untrusted.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { Chance } from "../../../harness/random.ts";
import { World } from "./branch-world.ts";
import { Rooms, type State, toOf, uidOf } from "./rooms-fixture.ts";

const ORG = "org_1" as OrgId;
const DAY = 24 * 3600_000;
const made: Rooms[] = [];
const makeRooms = (options: ConstructorParameters<typeof Rooms>[0] = {}) => {
  const rooms = new Rooms(options);
  made.push(rooms);
  return rooms;
};
afterEach(async () => {
  for (const rooms of made.splice(0)) await rooms[Symbol.asyncDispose]();
});

const columnOf = (room: Record<string, unknown[]>, table: string, column: string) =>
  (room[table] ?? []).map((row) => (row as Record<string, unknown>)[column]);

describe("a random history", () => {
  const chance = new Chance();
  test.each([1, 2, 3, 4, 5, 6])(
    `continues in another room and in its own, %i (seed ${chance.seed})`,
    async () => {
      const rooms = makeRooms();
      const bystander = new World(rooms, chance, "bystander");
      bystander.expiring = 0;
      await bystander.begin();
      await bystander.live(20);
      await rooms.settled();
      const others = rooms.rowsOf("bystander");

      const first = new World(rooms, chance, "first");
      await first.begin();
      await first.live(chance.whole(0, 120));
      await first.leaveUnanswered();
      const state = await rooms.take("first");
      const cut = first.copy("first", "turned back");
      const second = first.copy("second", "second");
      second.expiring = 0;

      await first.callAgain();
      await first.live(60);
      await rooms.put("second", state, DAY);
      await second.callAgain();
      await Promise.all([first.live(40), second.live(100)]);
      await Promise.all([first.finish(), second.finish()]);
      expect([first.breaks(), second.breaks()]).toEqual([[], []]);

      await rooms.settled();
      const elsewhere = rooms.rowsOf("second");
      const highest = Math.max(...[...first.accepted.values()].map(({ seq }) => seq));
      await rooms.replace("first", state, DAY);
      // Also for the next daemon, which has no memory of it.
      expect((await rooms.take("first")).fabric.last_seq).toBeGreaterThanOrEqual(highest);
      const known = new Set(cut.accepted.keys());
      await cut.callAgain();
      await cut.live(100);
      await cut.finish();
      expect(cut.breaks()).toEqual([]);
      const later = [...cut.accepted].filter(([id]) => !known.has(id)).map(([, { seq }]) => seq);
      expect(later.filter((seq) => seq <= highest)).toEqual([]);

      expect(rooms.rowsOf("bystander")).toEqual(others);
      for (const room of ["first", "second"]) {
        const { kept, rows } = rooms.bytesOf(room);
        expect(kept).toBe(rows);
      }
      expect(rooms.rowsOf("second")).toEqual(elsewhere);
    },
    60_000,
  );
});

test("a checkpoint has every column of every row, and put immediately it gives the same room", async () => {
  const rooms = makeRooms();
  const world = new World(rooms, new Chance(7), "first");
  await world.begin();
  await world.live(150);
  const before = rooms.rowsOf("first");
  const state = await rooms.take("first");
  await rooms.put("second", state);
  const without = (room: Record<string, unknown[]>) =>
    Object.fromEntries(
      Object.entries(room).map(([table, rows]) => [
        table,
        rows.map((row) => ({ ...(row as object), room_uid: "", branched_at_ms: 0, last_seq: 0 })),
      ]),
    );
  expect(without(rooms.rowsOf("second"))).toEqual(without(before));
  await world.live(50);
  await rooms.replace("first", state);
  expect(without(rooms.rowsOf("first"))).toEqual(without(before));
  // Once more is the same.
  expect(await rooms.take("second")).toEqual(state);
});

test("a cursor in an agent's list is valid in a room made from its room", async () => {
  const rooms = makeRooms();
  for (const name of ["a", "b", "c"]) {
    await rooms.call("first", name, "agent_subscribe", { agent_id: name, topics: [] });
    await rooms.call("first", "a", "agent_send", { destination: "a", payload: name });
    await rooms.call("first", "a", "barrier_arrive", { barrier_id: name, parties: 2, timeout_ms: 0 });
  }
  const lists = ["agent_wait", "agent_list", "barrier_list"];
  const pages = await Promise.all(lists.map((name) => rooms.call("first", "a", name, { limit: 2 })));
  await rooms.put("second", await rooms.take("first"));
  for (const [at, name] of lists.entries()) {
    const cursor = pages[at]?.next_cursor;
    expect((await rooms.call("second", "a", name, { cursor })).items).toHaveLength(1);
    expect(await rooms.codeOf("second", "a", name, { cursor: `${cursor}x` })).toBe("invalid_cursor");
  }
});

describe("time", () => {
  test("between checkpoint and branch is not counted: deadlines are later by it", async () => {
    const rooms = makeRooms({ ackMs: 500 });
    await rooms.call("first", "b", "agent_subscribe", { agent_id: "b", topics: [] });
    await rooms.call("first", "a", "agent_send", {
      destination: "b",
      ack_required: true,
      ttl_ms: 3000,
      message_id: "m",
    });
    expect((await rooms.call("first", "b", "agent_wait", {})).items).toMatchObject([{ attempt: 1 }]);
    const state = await rooms.take("first");
    await rooms.put("later", state, 10_000);
    // Of another daemon, which has no other room.
    const elsewhere = makeRooms({ ackMs: 500 });
    await elsewhere.put("now", state, 100);
    const [first, later] = ["first", "later"].map((room) => rooms.rowsOf(room));
    const now = elsewhere.rowsOf("now");
    for (const [table, column] of [
      ["deliveries", "due_at_ms"],
      ["deliveries", "expires_at_ms"],
    ] as const) {
      const ms = (room = {}) => Number(columnOf(room, table, column)[0]);
      expect([ms(later) - ms(first), ms(now) - ms(first)]).toEqual([10_000, 100]);
    }
    const expiry = (room = {}) => Date.parse(String(columnOf(room, "messages", "expires_at")[0]));
    expect(expiry(later) - expiry(first)).toBe(10_000);
    expect(columnOf(later ?? {}, "messages", "created_at")).toEqual(columnOf(first ?? {}, "messages", "created_at"));
    // By the timer that wake has set.
    const again = await elsewhere.call("now", "b", "agent_wait", { wait_ms: 5000, after: 1 });
    expect(again.items).toMatchObject([{ message_id: "m", attempt: 2 }]);
    while ((await elsewhere.call("now", "a", "message_get", {}, { message_id: "m" })).state !== "expired")
      await Bun.sleep(10);
    expect((await rooms.call("first", "a", "message_get", {}, { message_id: "m" })).state).toBe("expired");
    expect((await rooms.call("later", "a", "message_get", {}, { message_id: "m" })).state).toBe("delivered");
    // After a rollback its time to live continues from the checkpoint.
    await rooms.replace("first", state, 60_000);
    expect((await rooms.call("first", "a", "message_get", {}, { message_id: "m" })).state).toBe("delivered");
  });

  test("in which a message may be sent or requested again starts with the branch", async () => {
    const rooms = makeRooms();
    for (const message_id of ["m", "n"]) await rooms.call("first", "a", "agent_send", { topic: "t", message_id });
    await rooms.database.commit((queries) =>
      queries.run(sql`UPDATE messages SET created_at = '2026-01-01T00:00:00.000Z' WHERE message_id = 'm'`),
    );
    const old = (room: string) => findOld(rooms.database.queries, uidOf(room), 0).found.map(({ seq }) => seq);
    expect(old("first")).toEqual([1]);
    const state = await rooms.take("first");
    await rooms.put("second", state, DAY);
    expect(old("second")).toEqual([]);
    const known = await rooms.call("second", "a", "agent_send", { topic: "t", message_id: "m" });
    expect(known.seq).toBe(1);
  });
});

describe("rolled back", () => {
  test("a room keeps messages that were unneeded at the last check, and needs them again", async () => {
    const rooms = makeRooms();
    const budget = new Budget(rooms.database, 0);
    await rooms.call("first", "b", "agent_subscribe", { agent_id: "b", topics: [] });
    await rooms.call("first", "a", "agent_send", { destination: "b", payload: 1 });
    await rooms.call("first", "a", "agent_send", { topic: "t" });
    const state = await rooms.take("first");
    await rooms.call("first", "b", "agent_wait", { after: 0 });
    await rooms.call("first", "b", "agent_wait", { after: 1 });
    await rooms.settled();
    const old = findOld(rooms.database.queries, uidOf("first"), 0);
    expect(old.found).toMatchObject([{ seq: 1 }]);
    // However often within a millisecond, each time is another.
    const moments: unknown[] = [];
    for (let time = 0; time < 20; time++) {
      await rooms.replace("first", state);
      moments.push(...columnOf(rooms.rowsOf("first"), "message_rooms", "branched_at_ms"));
    }
    expect(new Set(moments).size).toBe(20);
    const holder = { org_id: ORG, room_uid: uidOf("first") };
    for (const remove of removalsOf(old, budget, holder)) expect(await rooms.database.commit(remove)).toBe(0);
    expect((await rooms.call("first", "b", "agent_wait", {})).items).toMatchObject([{ seq: 1 }]);
  });

  test("a waiter in the former room is notified of the rollback, and waits on for the rest", async () => {
    const rooms = makeRooms();
    const at = { participants: ["a", "b", "c"], timeout_ms: 20_000 };
    await rooms.call("first", "b", "agent_subscribe", { agent_id: "b", topics: [] });
    const standing = rooms.call("first", "a", "barrier_arrive", { barrier_id: "kept", ...at });
    const reading = rooms.call("first", "out", "agent_wait", { wait_ms: 20_000 });
    const asking = rooms.call("first", "a", "agent_send", {
      ...{ destination: "b", message_id: "kept", wait_reply: true, timeout_ms: 20_000 },
    });
    await rooms.settled();
    const state = await rooms.take("first");
    const lost = [
      rooms.codeOf("first", "a", "barrier_arrive", { barrier_id: "new", ...at }),
      rooms.codeOf("first", "c", "barrier_arrive", { barrier_id: "kept", ...at }),
      rooms.codeOf("first", "a", "agent_send", { destination: "b", wait_reply: true, timeout_ms: 20_000 }),
    ];
    await rooms.call("first", "b", "barrier_arrive", { barrier_id: "two", parties: 2, timeout_ms: 0 });
    expect(columnOf(rooms.rowsOf("first"), "barriers", "arrived")).toEqual(['["a","c"]', '["a"]', '["b"]']);
    await rooms.replace("first", state);
    expect(await Promise.all(lost)).toEqual(["barrier_cancelled", "barrier_cancelled", "message_not_found"]);
    const rest = ["b", "c"].map((name) => rooms.call("first", name, "barrier_arrive", { barrier_id: "kept", ...at }));
    expect((await Promise.all(rest)).map(({ state }) => state)).toEqual(["released", "released"]);
    await rooms.call("first", "b", "message_reply", { payload: "yes" }, { message_id: "kept" });
    await rooms.call("first", "b", "agent_send", { destination: "out" });
    expect([(await standing).state, (await asking).reply.payload]).toEqual(["released", "yes"]);
    expect((await reading).items).toHaveLength(1);
  });

  test.each(["fabric", "barriers"] as const)(
    "a waiter is woken by %s alone",
    async (noun) => {
      const rooms = makeRooms();
      await rooms.call("first", "b", "agent_subscribe", { agent_id: "b", topics: [] });
      const room = { ...toOf("first"), rows: newRows(uidOf("first")) };
      const state = await rooms.take("first");
      const waiting =
        noun === "fabric"
          ? rooms.codeOf("first", "a", "agent_send", { destination: "b", wait_reply: true, timeout_ms: 300_000 })
          : rooms.codeOf("first", "a", "barrier_arrive", { barrier_id: "m", parties: 2, timeout_ms: 300_000 });
      const [table, column] = noun === "fabric" ? ["messages", "message_id"] : ["barriers", "barrier_id"];
      while (columnOf(rooms.rowsOf("first"), table, column).length === 0) await rooms.settled();
      await rooms.settled();
      const how = { over: new AbortController().signal, isOther: false, requiresSpace: false };
      await rooms[noun].branch.stage(state[noun] as never, room, how);
      await rooms.database.commit((queries) => rooms[noun].branch.replace(queries, state[noun] as never, room));
      await rooms[noun].branch.wake(room);
      expect(await waiting).toBe(noun === "fabric" ? "message_not_found" : "barrier_cancelled");
    },
    10_000,
  );

  test("and aborted, a room has the agents of its table", async () => {
    const rooms = makeRooms();
    const state = await rooms.take("first");
    await rooms.call("first", "b", "agent_subscribe", { agent_id: "b", topics: [] });
    const room = { ...toOf("first"), rows: newRows(uidOf("first")) };
    const failing = rooms.database.commit((queries) => {
      rooms.agents.branch.replace(queries, state.agents, room);
      expect(rooms.agents.participants(room.room_uid).size).toBe(0);
      throw new Error("rolled back");
    });
    await expect(failing).rejects.toThrow("rolled back");
    expect([...rooms.agents.participants(room.room_uid).keys()]).toEqual(["b"]);
  });

  test("a barrier counts neither arrivals nor participants after the cut", async () => {
    const rooms = makeRooms();
    const at = { barrier_id: "b", parties: 3, timeout_ms: 0 };
    await rooms.call("first", "a", "barrier_arrive", at);
    const state = await rooms.take("first");
    for (const name of ["b", "c"]) await rooms.call("first", name, "barrier_arrive", at);
    await rooms.call("first", "a", "barrier_arrive", at);
    await rooms.replace("first", state);
    expect(columnOf(rooms.rowsOf("first"), "barriers", "generation")).toEqual([1]);
    expect((await rooms.call("first", "c", "barrier_arrive", at)).arrived).toEqual(["a", "c"]);
    expect(await rooms.codeOf("first", "a", "agent_send", { destination: "b" })).toBe("agent_not_found");
    // A call that had started with an arrival which was rolled back arrives again; without such a start it does not arrive twice.
    const again = (name: string) => rooms.call("first", name, "barrier_arrive", at, {}, { generation: 1 });
    expect((await again("a")).state).toBe("waiting");
    expect(await again("b")).toMatchObject({ generation: 1, state: "released" });
    expect(await again("a")).toMatchObject({ generation: 1, state: "released" });
  });
});

describe("space", () => {
  /** Fills the organization's space; returns the number of messages that took. */
  async function fillUp(rooms: Rooms, room: string): Promise<number> {
    for (let count = 0; ; count++) {
      const code = await rooms.codeOf(room, "a", "agent_send", { destination: "b", payload: "x".repeat(1000) });
      if (code === "quota_exceeded") return count;
      expect(code).toBe("none");
    }
  }

  test("equals that of the existing messages, in every room", async () => {
    const rooms = makeRooms({ keptBytes: 40_000 });
    await rooms.call("first", "b", "agent_subscribe", { agent_id: "b", topics: [] });
    const empty = await rooms.take("first");
    await rooms.call("first", "a", "agent_send", { destination: "b", payload: "x".repeat(1000) });
    const one = await rooms.take("first");
    const all = await fillUp(rooms, "first");
    const full = await rooms.take("first");
    await expect(rooms.put("second", full)).rejects.toMatchObject({ code: "quota_exceeded" });
    expect(Object.values(rooms.rowsOf("second")).flat()).toEqual([]);
    await rooms.replace("first", one);
    await rooms.put("second", one);
    await rooms.put("third", empty);
    // The one message of another room takes the place of one of these.
    expect(await fillUp(rooms, "first")).toBe(all - 1);
    await expect(rooms.requireSpace("second", full)).rejects.toMatchObject({ code: "quota_exceeded" });
    // A state that needs no more space than the present one is always accepted.
    await rooms.requireSpace("second", one);
    await rooms.requireSpace("first", await rooms.take("first"));
    expect((await rooms.take("second")).fabric).toEqual(one.fabric);
    for (const room of ["first", "second"]) expect(rooms.bytesOf(room).kept).toBe(rooms.bytesOf(room).rows);
    await rooms.replace("first", empty);
    expect(await fillUp(rooms, "third")).toBe(all);
  });

  test("is no limit for a rollback, and none is left for others until it is freed again", async () => {
    const rooms = makeRooms({ keptBytes: 40_000 });
    await rooms.call("first", "b", "agent_subscribe", { agent_id: "b", topics: [] });
    const empty = await rooms.take("first");
    const all = await fillUp(rooms, "first");
    const full = await rooms.take("first");
    await rooms.put("second", empty);
    await rooms.replace("second", full);
    expect(rooms.bytesOf("second")).toEqual(rooms.bytesOf("first"));
    expect(await fillUp(rooms, "first")).toBe(0);
    await rooms.replace("first", empty);
    expect(await fillUp(rooms, "first")).toBe(0);
    await rooms.replace("second", empty);
    expect(await fillUp(rooms, "first")).toBe(all);
  });

  test("of rows outside any table is the same as within one", async () => {
    const rooms = makeRooms();
    const world = new World(rooms, new Chance(), "first");
    await world.begin();
    await world.live(200);
    const { fabric } = await rooms.take("first");
    expect(fabric.messages.rows.length).toBeGreaterThan(10);
    expect(wholly(bytesOfState(fabric))).toBe(rooms.bytesOf("first").rows);
  });

  test("of an inbox is counted again", async () => {
    const rooms = makeRooms();
    await rooms.call("first", "b", "agent_subscribe", { agent_id: "b", topics: [] });
    const send = () => rooms.codeOf("first", "a", "agent_send", { destination: "b" });
    for (let count = 0; count < 999; count++) expect(await send()).toBe("none");
    const state = await rooms.take("first");
    expect([await send(), await send()]).toEqual(["none", "inbox_full"]);
    await rooms.call("first", "b", "agent_wait", { after: 1000 });
    expect(await send()).toBe("none");
    await rooms.replace("first", state);
    expect([await send(), await send()]).toEqual(["none", "inbox_full"]);
  });
});

describe("an agent with a destroyed sandbox", () => {
  const joined = async (rooms: Rooms) => {
    for (const name of ["a", "gone"]) {
      await rooms.call("first", name, "agent_subscribe", { agent_id: name, topics: ["t"] });
    }
    await rooms.call("first", "a", "barrier_arrive", { barrier_id: "b", participants: ["a", "gone"], timeout_ms: 0 });
  };

  test("is not part of a branch, and no barrier waits for it", async () => {
    const rooms = makeRooms();
    await joined(rooms);
    rooms.gone.add(`${uidOf("first")} gone`);
    rooms.agents.changed(uidOf("first"), "gone");
    await rooms.put("second", await rooms.take("first"));
    expect(columnOf(rooms.rowsOf("second"), "agents", "agent_id")).toEqual(["a"]);
    expect(columnOf(rooms.rowsOf("second"), "barriers", "state")).toEqual(["broken"]);
    expect(await rooms.codeOf("second", "a", "agent_send", { destination: "gone" })).toBe("agent_not_found");
  });

  test("is gone after a rollback to a room without it", async () => {
    const rooms = makeRooms();
    await joined(rooms);
    const state = await rooms.take("first");
    rooms.gone.add(`${uidOf("first")} gone`);
    rooms.agents.changed(uidOf("first"), "gone");
    await rooms.replace("first", state);
    expect(columnOf(rooms.rowsOf("first"), "barriers", "state")).toEqual(["broken"]);
    expect(await rooms.codeOf("first", "a", "agent_send", { destination: "gone" })).toBe("agent_unavailable");
  });
});

describe("a state", () => {
  const without = ({ fabric, ...rest }: State, column: string): State => {
    const at = fabric.deliveries.columns.indexOf(column);
    const drop = <T>(values: T[]) => values.filter((_, index) => index !== at);
    const { columns, rows } = fabric.deliveries;
    return { ...rest, fabric: { ...fabric, deliveries: { columns: drop(columns), rows: rows.map(drop) } } };
  };

  test("of an earlier roomd has the defaults of missing columns", async () => {
    const rooms = makeRooms();
    await rooms.call("first", "b", "agent_subscribe", { agent_id: "b", topics: [] });
    await rooms.call("first", "a", "agent_send", { destination: "b", kind: "request" });
    await rooms.put("second", without(await rooms.take("first"), "awaited"));
    expect(columnOf(rooms.rowsOf("second"), "deliveries", "awaited")).toEqual([0]);
  });

  test("of a later roomd is rejected, and changes nothing", async () => {
    const rooms = makeRooms();
    await rooms.call("first", "a", "agent_send", { topic: "t" });
    const before = rooms.rowsOf("first");
    const state = await rooms.take("first");
    state.barriers.barriers.columns.push("of_tomorrow");
    await expect(rooms.replace("first", state)).rejects.toThrow("of_tomorrow");
    expect(rooms.rowsOf("first")).toEqual(before);
    expect((await rooms.call("first", "a", "agent_send", { topic: "t" })).seq).toBe(2);
  });

  test("staged for a room that was not created is found and removed", async () => {
    const rooms = makeRooms();
    await rooms.call("first", "b", "agent_subscribe", { agent_id: "b", topics: ["t"] });
    await rooms.call("first", "a", "agent_send", { topic: "t" });
    await rooms.call("first", "b", "barrier_arrive", { barrier_id: "x", agent_id: "b", parties: 2, timeout_ms: 0 });
    const state = await rooms.take("first");
    rooms.isMade("first");
    const { branch: fabric } = rooms.fabric;
    const strays = () =>
      [fabric, rooms.barriers.branch, rooms.agents.branch].map((branch) => branch.strays(rooms.database.queries));
    expect(strays()).toEqual([[], [], []]);
    for (const room of ["second", "third"]) await rooms.stage(room, state);
    const both = [uidOf("second"), uidOf("third")];
    expect(strays()).toEqual([both, both, both]);
    // No part of the organization's space, and of no answer.
    expect(rooms.bytesOf("second").kept).toBe(0);
    for (const room of ["second", "third"]) await rooms.forget(room);
    expect(strays()).toEqual([[], [], []]);
    expect(Object.values(rooms.rowsOf("second")).flat()).toEqual([]);
    expect((await rooms.take("first")).fabric).toEqual(state.fabric);
  });

  test("is not staged any further once its caller disconnects", async () => {
    const rooms = makeRooms();
    await rooms.call("first", "a", "agent_send", { topic: "t" });
    const state = await rooms.take("first");
    const how = { over: AbortSignal.abort(), isOther: true, requiresSpace: true };
    await expect(rooms.fabric.branch.stage(state.fabric, toOf("second"), how)).rejects.toThrow("aborted");
    expect(Object.values(rooms.rowsOf("second")).flat()).toEqual([]);
  });

  test("is not put into a room that has messages already", async () => {
    const rooms = makeRooms();
    await rooms.call("first", "a", "agent_send", { topic: "t" });
    const state = await rooms.take("first");
    await expect(rooms.put("first", state)).rejects.toThrow();
    expect((await rooms.call("first", "a", "agent_send", { topic: "t" })).seq).toBe(2);
  });
});
