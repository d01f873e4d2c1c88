/** The messages of the last minute, as they are counted. */
import { expect, test } from "vitest";
import { Lately } from "../../../../daemon/domain/fabric/lately.ts";
import { newId } from "../../../../shared/ids.ts";

test("counts what came in the last sixty seconds, of each room", () => {
  let second = 1000;
  const lately = new Lately(() => second);
  const [room, other] = [newId("rom"), newId("rom")];
  expect(lately.of(room)).toBe(0);
  lately.count(room);
  lately.count(room);
  second += 30;
  lately.count(room);
  lately.count(other);
  expect([lately.of(room), lately.of(other)]).toEqual([3, 1]);
  second += 29;
  expect(lately.of(room)).toBe(3);
  second += 1;
  expect(lately.of(room)).toBe(1);
  second += 3600;
  lately.count(room);
  expect([lately.of(room), lately.of(other)]).toEqual([1, 0]);
  lately.forget(room);
  expect(lately.of(room)).toBe(0);
});
