/** Names of missing participants, of which thousands of waits at a barrier share one list. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { Rooms, uidOf } from "../fabric/rooms-fixture.ts";

let rooms: Rooms;
beforeEach(() => {
  rooms = new Rooms();
});
afterEach(() => rooms[Symbol.asyncDispose]());

const NAMES = ["a", "b", "c", "d"];
const waits = () => rooms.agents.waits.all(uidOf("r"));
const arrive = (agent_id: string, more: object = {}) =>
  rooms.call("r", agent_id, "barrier_arrive", { barrier_id: "b", agent_id, timeout_ms: 5_000, ...more });
async function waiting(count: number): Promise<void> {
  while (waits().length < count) await new Promise((resolve) => setImmediate(resolve));
}

test("is one list for all waits, and follows arrivals", async () => {
  const first = arrive("a", { participants: NAMES });
  await waiting(1);
  const second = arrive("b");
  await waiting(2);
  const [one, other] = waits().map((wait) => wait.on());
  expect(one).toEqual(["c", "d"]);
  expect(other).toBe(one);
  const third = arrive("c");
  await waiting(3);
  expect(waits().map((wait) => wait.on())).toEqual([["d"], ["d"], ["d"]]);
  await arrive("d");
  const states = await Promise.all([first, second, third]);
  expect(states.map(({ state, arrived }) => [state, arrived])).toEqual(states.map(() => ["released", NAMES]));
});

test("is read again after a rollback of the room", async () => {
  await rooms.call("r", "a", "barrier_arrive", { barrier_id: "b", agent_id: "a", participants: NAMES, timeout_ms: 0 });
  const state = await rooms.take("r");
  const taken = arrive("b").catch((error: { code: string }) => error.code);
  await waiting(1);
  expect(waits()[0]?.on()).toEqual(["c", "d"]);
  await rooms.replace("r", state);
  expect(await taken).toBe("barrier_cancelled");
  const again = arrive("c");
  await waiting(1);
  expect(waits()[0]?.on()).toEqual(["b", "d"]);
  await Promise.all([arrive("b"), arrive("d"), again]);
});
