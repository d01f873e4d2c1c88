/** A slot that owners take in turn: no owner gets it again while another one requests it. */
import { expect, test } from "vitest";
import { ReservedSlot } from "../../../../daemon/core/concurrency/reserved-slot.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { MovedClock } from "../../../harness/hosts/moved-clock.ts";

const placeOf = (clock?: MovedClock) => {
  const place = new ReservedSlot(() => new ServiceError("insufficient_capacity"));
  /** The function that releases the slot; null if refused. */
  const take = (owner: string, nowMs = 0) => {
    clock?.to(nowMs);
    try {
      return place.take(owner);
    } catch (error) {
      expect(error).toMatchObject({ code: "insufficient_capacity" });
      return null;
    }
  };
  return take;
};

test("belongs to one owner, which releases it once", () => {
  const take = placeOf();
  const first = take("a");
  expect([take("a"), take("b")]).toEqual([null, null]);
  first?.();
  const second = take("b");
  expect(second).not.toBeNull();
  first?.();
  expect(take("a")).toBeNull();
});

test("goes to owners in the order of their refusals, however often one requests it", () => {
  const take = placeOf();
  let held = take("greedy");
  const had: string[] = [];
  const owners = ["greedy", "greedy", "b", "c", "greedy"];
  for (let turn = 0; turn < 6; turn++) {
    for (const owner of owners) expect(take(owner)).toBeNull();
    held?.();
    for (const owner of [...owners, "b", "c"]) {
      const given = take(owner);
      if (!given) continue;
      held = given;
      had.push(owner);
    }
  }
  expect(had).toEqual(["b", "c", "greedy", "b", "c", "greedy"]);
});

test("is reserved for a refused owner until it makes no request for a minute", () => {
  using clock = new MovedClock();
  const take = placeOf(clock);
  const held = take("a");
  expect(take("b", 0)).toBeNull();
  held?.();
  expect(take("a", 59_000)).toBeNull();
  expect(take("b", 119_000)).toBeNull();
  const kept = take("a", 119_000);
  expect(kept).not.toBeNull();
  kept?.();
});

test("has no turns if there is no other owner", () => {
  const take = placeOf();
  for (let turn = 0; turn < 3; turn++) {
    const held = take("a");
    expect(take("a")).toBeNull();
    held?.();
  }
});
