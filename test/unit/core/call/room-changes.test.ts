/** Changes of followed rooms: each wakes the clients that have not seen it, and none is lost between two looks. */
import { expect, test } from "vitest";
import { RoomChanges } from "../../../../daemon/core/call/room-changes.ts";
import { Notifier } from "../../../../daemon/core/concurrency/notifier.ts";
import { WaitGraph } from "../../../../daemon/core/concurrency/wait-graph.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import type { RoomUid } from "../../../../shared/ids.ts";

const [ROOM, OTHER] = ["rom_1", "rom_2"] as RoomUid[] as [RoomUid, RoomUid];
const NEVER = new AbortController().signal;
const BY = { owner: "host", signal: NEVER } as const;

/** Whether a wait is still waiting, once all that is due has run. */
async function waits(wait: Promise<unknown>): Promise<boolean> {
  const isOver = wait.then(
    () => false,
    () => false,
  );
  return await Promise.race([isOver, new Promise<true>((resolve) => setImmediate(() => resolve(true)))]);
}

test("a change of the room wakes its clients, one of another room does not", async () => {
  const changes = new RoomChanges(new Notifier());
  changes.enter(ROOM);
  changes.enter(OTHER);
  const wait = changes.after(ROOM, changes.count(ROOM), BY);
  changes.changed(OTHER);
  expect(await waits(wait)).toBe(true);
  changes.changed(ROOM);
  await wait;
});

test("a change between a check and the wait is not lost", async () => {
  const changes = new RoomChanges(new Notifier());
  changes.enter(ROOM);
  const seen = changes.count(ROOM);
  changes.changed(ROOM);
  await changes.after(ROOM, seen, BY);
  expect(await waits(changes.after(ROOM, changes.count(ROOM), BY))).toBe(true);
});

test("a message, a barrier or a record of the room is a change of that room only", () => {
  const bells = new Notifier();
  const changes = new RoomChanges(bells);
  for (const room of [ROOM, OTHER]) changes.enter(room);
  bells.ring(ROOM, "inbox a");
  bells.ringAll(ROOM);
  bells.ring("audit org_1", ROOM);
  expect([changes.count(ROOM), changes.count(OTHER)]).toEqual([3, 0]);
});

test("any number of commits without a room are one delayed change of each room", async () => {
  const changes = new RoomChanges(new Notifier(), 10);
  changes.enter(ROOM);
  const wait = changes.after(ROOM, 0, BY);
  for (let commit = 0; commit < 100; commit++) changes.anyChanged();
  expect(changes.count(ROOM)).toBe(0);
  await wait;
  expect(changes.count(ROOM)).toBe(1);
});

test("the start or end of a wait in the graph is a change, a repeated end is not", () => {
  const changes = new RoomChanges(new Notifier());
  const graph = new WaitGraph((roomUid) => changes.changed(roomUid as RoomUid));
  changes.enter(ROOM);
  const shown = { type: "inbox", id: null } as const;
  const wait = { agents: ["a"], since: "", on: () => [], about: () => null, shown };
  graph.enter(ROOM, wait);
  expect(changes.count(ROOM)).toBe(1);
  graph.leave(ROOM, wait);
  graph.leave(ROOM, wait);
  expect(changes.count(ROOM)).toBe(2);
});

test("the end of the room or of its client ends the wait", async () => {
  const bells = new Notifier();
  const changes = new RoomChanges(bells);
  changes.enter(ROOM);
  const controller = new AbortController();
  const left = changes.after(ROOM, 0, { owner: "host", signal: controller.signal });
  const ended = changes.after(ROOM, 0, BY);
  controller.abort();
  await left;
  bells.end(ROOM, new ServiceError("room_destroying"));
  await expect(ended).rejects.toMatchObject({ code: "room_destroying" });
});

test("a room without clients is forgotten", () => {
  const changes = new RoomChanges(new Notifier());
  changes.enter(ROOM);
  changes.enter(ROOM);
  changes.changed(ROOM);
  expect([changes.leave(ROOM), changes.count(ROOM)]).toEqual([true, 1]);
  expect([changes.leave(ROOM), changes.count(ROOM)]).toEqual([false, 0]);
});
