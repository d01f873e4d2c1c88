/** Places of clients that follow events, when there are fewer than are wanted. */
import { expect, test } from "vitest";
import { Readers } from "../../../../../daemon/domain/audit/index.ts";
import type { OrgId } from "../../../../../shared/ids.ts";

const FULL = expect.objectContaining({ code: "rate_limited" });

/** Followers: their names in order of arrival, until each leaves or is closed. */
function following(readers: Readers) {
  const names: string[] = [];
  const ends = new Map<string, () => void>();
  const add = (org: string, name: string) => {
    const controller = new AbortController();
    const end = () => {
      names.splice(names.indexOf(name), 1);
      controller.abort();
    };
    readers.add({ org_id: org as OrgId }, controller.signal, end);
    names.push(name);
    ends.set(name, end);
  };
  return { names, add, end: (name: string) => ends.get(name)?.() };
}

test("if all places are taken, the newest stream of the largest holder is closed, down to equal shares", () => {
  const { names, add, end } = following(new Readers(6, 4));
  for (const name of ["a1", "a2", "a3", "a4"]) add("a", name);
  expect(() => add("a", "a5")).toThrow(FULL);
  for (const name of ["b1", "b2"]) add("b", name);
  add("c", "c1");
  expect(names).toEqual(["a1", "a2", "a3", "b1", "b2", "c1"]);
  add("c", "c2");
  expect(names).toEqual(["a1", "a2", "b1", "b2", "c1", "c2"]);
  for (const org of ["a", "b", "c"]) expect(() => add(org, "more")).toThrow(FULL);
  add("d", "d1");
  expect(names).toHaveLength(6);
  expect(names.at(-1)).toBe("d1");
  end("d1");
  add("a", "a6");
  expect(names).toHaveLength(6);
});
