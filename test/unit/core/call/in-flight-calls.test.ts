import { expect, test } from "vitest";
import { InFlightCalls } from "../../../../daemon/core/call/in-flight-calls.ts";

const ROOM = { org_id: "org_1", room_id: "a" };

test("a wait for calls of a room covers exactly those calls", async () => {
  const calls = new InFlightCalls();
  const [own, other] = [calls.enter(ROOM), calls.enter(ROOM)];
  calls.enter({ ...ROOM, room_id: "b" });
  let isDone = false;
  const waiting = calls.untilDone(ROOM, 1).then(() => {
    isDone = true;
  });
  await Promise.resolve();
  expect(isDone).toBe(false);
  other.leave();
  await waiting;
  own.leave();
  await calls.untilDone(ROOM, 0);
});

test("calls that do not end cause an error", async () => {
  const calls = new InFlightCalls();
  calls.enter(ROOM);
  await expect(calls.untilDone(ROOM, 0, 10)).rejects.toMatchObject({ code: "invalid_state" });
});

test("an incomplete request fails because the room moves, and a complete one does not", async () => {
  const calls = new InFlightCalls(20);
  const [slow, quick] = [calls.enter(ROOM), calls.enter(ROOM)];
  const sent = Promise.withResolvers<string>();
  const cut = slow.coming(
    (over) => new Promise((_, reject) => over.addEventListener("abort", () => reject(over.reason))),
  );
  const whole = quick.coming(() => sent.promise);
  void cut.catch(() => slow.leave());
  void whole.then(() => quick.leave());
  const waiting = calls.untilDone(ROOM, 0);
  sent.resolve("all of it");
  await expect(cut).rejects.toMatchObject({ code: "room_moving" });
  expect(await whole).toBe("all of it");
  await waiting;
});
