/** States of rooms, one from outside that is slow to parse and a large one, and the longest turn of the event loop while they are read and put. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readForeignState } from "../../../daemon/domain/rooms/backup/state.ts";
import { taking } from "../../../daemon/domain/rooms/checkpoints/room-state.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";
import { Rooms, uidOf } from "../domain/fabric/rooms-fixture.ts";

/** Values are counted as the bytes arrive, in under a millisecond; to parse such a line takes 60 to 180. */
const MAX_MS = 20;
const LINE_BYTES = 4_000_000;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-state-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const read = (file: string) =>
  readForeignState(file, {} as Parameters<typeof readForeignState>[1], { takenAtMs: 0, org_id: null });

test.each([
  ["empty lists", `{"rows":0,"some":[[${"[],".repeat(LINE_BYTES / 3)}0]]}\n`],
  ["numbers", `{"rows":0,"some":[[${"1,".repeat(LINE_BYTES / 2)}0]]}\n`],
  ["lists in lists", `${"[".repeat(LINE_BYTES)}\n`],
])("a line of %s is rejected before it is parsed", async (_, line) => {
  const file = join(directory, "state");
  writeFileSync(file, line);
  // Compiled before it is measured.
  await expect(read(file)).rejects.toThrow("is malformed");
  const longest = await longestTurn(() => expect(read(file)).rejects.toThrow("is malformed"));
  console.log(`longest turn: ${longest.toFixed(1)} ms`);
  expect(longest).toBeLessThan(boundOf(MAX_MS));
});

describe("a room of 20,000 messages", () => {
  let rooms: Rooms;
  beforeEach(async () => {
    rooms = new Rooms({ file: join(directory, "roomd.db") });
    rooms.database.queries.run(sql`PRAGMA synchronous = OFF`);
    const agents = Array.from({ length: 50 }, (_, n) => `a${n}`);
    for (const agent_id of agents) await rooms.call("r", agent_id, "agent_subscribe", { agent_id, topics: [] });
    for (let sent = 0; sent < 20_000; sent += 100) {
      const messages = Array.from({ length: 100 }, (_, n) => ({
        source: "a0",
        destination: agents[(sent + n) % agents.length],
        payload: "x".repeat(200),
      }));
      await rooms.call("r", "*", "message_send_many", { messages });
    }
  }, 60_000);
  afterEach(() => rooms[Symbol.asyncDispose]());

  const takeIt = (onStart = () => {}) =>
    taking(rooms.database, "org_1" as OrgId, (queries) => {
      onStart();
      return rooms.fabric.branch.take(queries, uidOf("r"));
    });

  test("is saved in short turns, in its state at the start", async () => {
    // Compiled before it is measured.
    const { fabric } = await rooms.take("r");
    await takeIt();
    let taken: unknown;
    const longest = await longestTurn(async () => {
      const started = Promise.withResolvers<void>();
      const reading = takeIt(started.resolve);
      await started.promise;
      for (let n = 0; n < 20; n++) await rooms.call("r", "a0", "agent_send", { destination: "a1", payload: n });
      taken = await reading;
    });
    console.log(`longest turn: ${longest.toFixed(1)} ms`);
    expect(JSON.parse(JSON.stringify(taken)).deliveries.rows).toHaveLength(20_000);
    expect(JSON.parse(JSON.stringify(taken))).toEqual(fabric);
    expect(longest).toBeLessThan(boundOf(MAX_MS));
  });

  test("gets the rows of a checkpoint in one short commit, and as it was before until then", async () => {
    const state = await rooms.take("r");
    const rowsIn = () => rooms.database.queries.all<{ rows: number }>(sql`SELECT count(*) AS rows FROM deliveries`)[0];
    // Compiled before it is measured.
    await rooms.replace("r", state);
    await rooms.call("r", "a0", "agent_send", { destination: "a1", payload: "later" });
    const seen = new Set<number>();
    let isOver = false;
    const longest = await longestTurn(async () => {
      const restored = rooms.replace("r", state).then(() => {
        isOver = true;
      });
      while (!isOver) {
        const { items } = await rooms.call("r", "a1", "agent_wait", { agent_id: "a1", after: 19_990 });
        seen.add(items.length);
        await new Promise(setImmediate);
      }
      await restored;
    });
    console.log(`longest turn: ${longest.toFixed(1)} ms`);
    const { items } = await rooms.call("r", "a1", "agent_wait", { agent_id: "a1", after: 19_990 });
    expect([...seen, items.length]).toEqual([items.length + 1, items.length, items.length].slice(0, seen.size + 1));
    expect((await rooms.take("r")).fabric.messages).toEqual(state.fabric.messages);
    expect(rowsIn()).toEqual({ rows: 20_000 });
    expect(rooms.bytesOf("r").kept).toBe(rooms.bytesOf("r").rows);
    expect(longest).toBeLessThan(boundOf(MAX_MS));
  }, 60_000);

  test("is restored into another room in many commits", async () => {
    const state = await rooms.take("r");
    // Compiled before it is measured.
    await rooms.put("before", state);
    const longest = await longestTurn(() => rooms.put("after", state));
    console.log(`longest turn: ${longest.toFixed(1)} ms`);
    expect(rooms.bytesOf("after").kept).toBe(rooms.bytesOf("after").rows);
    expect((await rooms.take("after")).fabric).toEqual(state.fabric);
    expect(longest).toBeLessThan(boundOf(MAX_MS));
  });
});
