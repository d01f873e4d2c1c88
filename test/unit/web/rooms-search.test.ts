/** The search of the page of rooms: completely defined by the address, which is untrusted. */
import { expect, test } from "vitest";
import { matches, searchOf } from "../../../daemon/web/rooms/search.ts";

const of = (query: string) => searchOf(new URLSearchParams(query));
const ROOM = { room_id: "job-087", host: "alpha", labels: { team: "Data" } };

test("without a search there is a page of rooms, with one all rooms up to the limit", () => {
  expect(of("")).toEqual({ text: "", page: 100, most: 100, more: 200 });
  expect(of("most=200")).toMatchObject({ most: 200, more: 300 });
  expect(of("q=job-087")).toEqual({ text: "job-087", page: 1000, most: 1000, more: 2000 });
  expect(of("q=job-087&most=2000")).toMatchObject({ most: 2000, more: 3000 });
  expect(of("q=+").most).toBe(100);
});

test("an address cannot exceed the limit", () => {
  for (const most of ["", "-1", "0", "1e3x", "NaN", "Infinity", "1.5"])
    expect([most, of(`most=${most}`).most]).toEqual([most, 100]);
  expect(of("most=999999999").most).toBe(20_000);
});

test("a room is found by its name and labels, and by its host if there are several", () => {
  expect(["087", " JOB", "team=data", "tEAM="].every((text) => matches(ROOM, text, false))).toBe(true);
  expect([matches(ROOM, "alpha", true), matches(ROOM, "alpha", false), matches(ROOM, "x", true)]).toEqual([
    true,
    false,
    false,
  ]);
});
