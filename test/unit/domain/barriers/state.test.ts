import { describe, expect, test } from "vitest";
import { arrive, missingOf, NEXT_STATES, requireWhole, termsOf } from "../../../../daemon/domain/barriers/state.ts";
import type { BarrierRow } from "../../../../daemon/domain/barriers/table.ts";
import { BARRIER_STATES } from "../../../../shared/api/barriers.ts";
import type { RoomUid } from "../../../../shared/ids.ts";

const MOMENT = "2026-01-01T00:00:00.000Z";
const row: BarrierRow = {
  room_uid: "rom_1" as RoomUid,
  barrier_id: "b",
  generation: 1,
  state: "waiting",
  parties: 2,
  participants: ["a", "b"],
  arrived: [],
  dead: [],
  opened_at: MOMENT,
  ended_at: null,
};

describe("a generation", () => {
  test("has one open state and three final ones", () => {
    expect(BARRIER_STATES.filter((state) => NEXT_STATES[state].length > 0)).toEqual(["waiting"]);
    expect([...NEXT_STATES.waiting].sort()).toEqual(BARRIER_STATES.filter((state) => state !== "waiting").toSorted());
  });

  test("is released by the last arrival, and not by a repeated one", () => {
    const one = arrive(row, ["a"], MOMENT);
    expect([one.state, missingOf(one)]).toEqual(["waiting", ["b"]]);
    expect(arrive(one, ["a"], MOMENT)).toEqual(one);
    expect(arrive(one, ["b"], MOMENT)).toMatchObject({ state: "released", arrived: ["a", "b"], ended_at: MOMENT });
    expect(() => arrive(one, ["b", "c"], MOMENT)).toThrow(/ 2 /);
  });

  test("reports how it ended", () => {
    expect(() => requireWhole({ ...row, state: "released" })).not.toThrow();
    expect(() => requireWhole({ ...row, state: "broken", dead: ["a"] })).toThrow(
      expect.objectContaining({ code: "barrier_broken" }),
    );
    expect(() => requireWhole({ ...row, state: "cancelled" })).toThrow(
      expect.objectContaining({ code: "barrier_cancelled" }),
    );
  });

  test("inherits the previous generation's terms if an arrival names none", () => {
    const arrivals = ["a"];
    expect(termsOf({ arrivals, listed: false }, row)).toEqual({ parties: 2, participants: ["a", "b"] });
    expect(termsOf({ arrivals, listed: true }, row)).toEqual({ parties: 1, participants: null });
    expect(termsOf({ arrivals, listed: false, participants: ["a", "c", "d"] }, row).parties).toBe(3);
    expect(() => termsOf({ arrivals, listed: false }, undefined)).toThrow(
      expect.objectContaining({
        options: expect.objectContaining({ errors: [expect.objectContaining({ field: "parties", code: "required" })] }),
      }),
    );
  });
});
