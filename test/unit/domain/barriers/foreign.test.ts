/** Barriers in a file from outside: limited to states that a room could have, and to rows that are fast to insert. */
import { expect, test } from "vitest";
import type { Values } from "../../../../daemon/db/client.ts";
import { UntrustedRows } from "../../../../daemon/db/untrusted-rows.ts";
import { acceptBarriers } from "../../../../daemon/domain/barriers/foreign.ts";
import { findBarrier } from "../../../../daemon/domain/barriers/index.ts";
import { Rooms, toOf } from "../fabric/rooms-fixture.ts";

const COLUMNS = [
  ...["barrier_id", "generation", "state", "parties", "participants", "arrived", "dead", "opened_at", "ended_at"],
];
const AT = "2026-01-01T00:00:00.000Z";
const ORIGIN = { takenAtMs: Date.parse(AT) };
const WAITS = {
  ...{ barrier_id: "b", generation: 3, state: "waiting", parties: 2 },
  ...{ participants: '["one","two"]', arrived: '["one"]', dead: "[]", opened_at: AT, ended_at: null },
};
const OVER = { ...WAITS, generation: 2, state: "released", arrived: '["one","two"]', ended_at: AT };

const savedState = (rows: Record<string, unknown>[], gone: string[] = []) => ({
  barriers: { columns: COLUMNS, rows: rows.map((row) => COLUMNS.map((name) => row[name]) as Values) },
  gone,
});
const generations = (count: number) => Array.from({ length: count }, (_, at) => ({ ...OVER, generation: at + 1 }));

test("barriers of a room are accepted unchanged", async () => {
  const given = savedState([...generations(16), { ...WAITS, generation: 17 }, { ...WAITS, barrier_id: "c" }]);
  expect(await acceptBarriers(structuredClone(given), ORIGIN)).toEqual(given);
});

test("barriers that wait for gone agents are broken immediately, with all of those agents", async () => {
  const { barriers, gone } = await acceptBarriers(savedState([WAITS, OVER], ["two", "one"]), ORIGIN);
  const [waited, over] = barriers.rows.map((row) => Object.fromEntries(COLUMNS.map((name, at) => [name, row[at]])));
  expect(gone).toEqual([]);
  expect(waited).toMatchObject({ state: "broken", dead: '["one","two"]', ended_at: expect.any(String) });
  expect(over).toEqual(OVER);
});

test("barriers of a checkpoint are broken with all gone agents", async () => {
  const rooms = new Rooms();
  try {
    const names = (from: number) => Array.from({ length: 50 }, (_, at) => `a${(from + at) % 2000}`);
    const waiting = Array.from({ length: 1000 }, (_, at) => {
      const participants = JSON.stringify(names(at));
      return { ...WAITS, barrier_id: `b${at}`, parties: 50, participants, arrived: "[]" };
    });
    const goneAgents = Array.from({ length: 1000 }, (_, at) => `a${at}`);
    const room = toOf("r");
    const state = savedState(waiting, goneAgents);
    await rooms.barriers.branch.stage(state, room, {
      ...{ over: new AbortController().signal, isOther: true, requiresSpace: true },
    });
    await rooms.database.commit((queries) => rooms.barriers.branch.put(queries, state, room));
    const { queries } = rooms.database;
    expect(findBarrier(queries, room.room_uid, "b999")).toMatchObject({ state: "broken", dead: ["a999"] });
    expect(findBarrier(queries, room.room_uid, "b3")?.dead).toEqual(names(3));
  } finally {
    await rooms[Symbol.asyncDispose]();
  }
});

test.each<[string, Record<string, unknown>[], string[]?]>([
  ["a gone agent listed twice", [WAITS], ["two", "two"]],
  ["a gone agent that no barrier waits for", [WAITS], ["two", "three"]],
  ["a gone agent, although all barriers have ended", [OVER], ["two"]],
  ["more names than a room may have", Array.from({ length: 10_001 }, (_, at) => ({ ...OVER, barrier_id: `b${at}` }))],
  ["more generations than are retained", generations(18)],
  ["two generations that wait", [WAITS, { ...WAITS, generation: 4 }]],
  ["a waiting generation before the newest", [WAITS, { ...OVER, generation: 4 }]],
  ["a waiting generation with all arrivals", [{ ...WAITS, arrived: '["one","two"]' }]],
  ["more arrivals than parties", [{ ...OVER, participants: null, arrived: '["one","two","three"]' }]],
  ["an arrival twice", [{ ...WAITS, parties: 3, participants: null, arrived: '["one","one"]' }]],
  ["a participant twice", [{ ...WAITS, participants: '["one","two","two"]' }]],
  ["an arrival of another", [{ ...WAITS, arrived: '["three"]' }]],
  ["more parties than participants", [{ ...WAITS, parties: 3 }]],
  ["an end while it waits", [{ ...WAITS, ended_at: AT }]],
  ["an end that is still to come", [{ ...OVER, ended_at: "2026-01-02T00:00:00.000Z" }]],
  ["an ended generation without an end", [{ ...OVER, ended_at: null }]],
])("%s is refused", async (_what, rows, goneAgents) => {
  await expect(acceptBarriers(savedState(rows, goneAgents), ORIGIN)).rejects.toThrow(UntrustedRows);
});
