/** The messages of the last minute, as they are counted. */
import { expect, test } from "vitest";
import { MessageRate } from "../../../../daemon/domain/fabric/message-rate.ts";
import { newId } from "../../../../shared/ids.ts";
import { MovedClock } from "../../../harness/hosts/moved-clock.ts";

test("counts the messages of the last sixty seconds, per room", () => {
  using clock = new MovedClock();
  const lately = new MessageRate();
  const [room, other] = [newId("rom"), newId("rom")];
  expect(lately.of(room)).toBe(0);
  lately.count(room);
  lately.count(room);
  clock.pass(30_000);
  lately.count(room);
  lately.count(other);
  expect([lately.of(room), lately.of(other)]).toEqual([3, 1]);
  clock.pass(29_000);
  expect(lately.of(room)).toBe(3);
  clock.pass(1_000);
  expect(lately.of(room)).toBe(1);
  clock.pass(3600_000);
  lately.count(room);
  expect([lately.of(room), lately.of(other)]).toEqual([1, 0]);
  lately.forget(room);
  expect(lately.of(room)).toBe(0);
});
