import { expect, test } from "vitest";
import { RoomCalls } from "../../../daemon/core/room-calls.ts";

const ROOM = { org_id: "org_1", room_id: "a" };

test("who waits for calls about a room waits for those, and for no others", async () => {
  const calls = new RoomCalls();
  const [own, other] = [calls.enter(ROOM), calls.enter(ROOM)];
  calls.enter({ ...ROOM, room_id: "b" });
  let isDone = false;
  const waiting = calls.untilDone(ROOM, 1).then(() => {
    isDone = true;
  });
  await Promise.resolve();
  expect(isDone).toBe(false);
  other();
  await waiting;
  own();
  await calls.untilDone(ROOM, 0);
});

test("calls that do not end are told of", async () => {
  const calls = new RoomCalls();
  calls.enter(ROOM);
  await expect(calls.untilDone(ROOM, 0, 10)).rejects.toMatchObject({ code: "invalid_state" });
});
