import { describe, expect, test } from "vitest";
import { type Candidate, HostChoice } from "../../../daemon/cluster/choose-host.ts";
import type { HostState, WantedPlace } from "../../../daemon/cluster/directory.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { Chance } from "../../harness/random.ts";

const WANTED: WantedPlace = { org_id: "org_1" as OrgId, room_id: "r" };

function candidate(host_id: string, promised: number | null, state: HostState = "active", labels = {}): Candidate {
  const host = { host_id, state, labels, address: "a:1", certificate: "", url: "", joined_at: "" };
  const load = { cpus: 1, rooms: 0, sandboxes: 0, is_degraded: false, templates: [] };
  return { host, load: promised === null ? null : { ...load, memory_mib: { promised, total: 100 } }, beat: "1" };
}

const chosen = (candidates: Candidate[], requested: Partial<WantedPlace> = {}) =>
  new HostChoice().choose(candidates, { ...WANTED, ...requested }, 1).host_id;

/** How many of the names are of each host. */
const counts = (names: string[]) =>
  Object.fromEntries([...new Set(names)].sort().map((name) => [name, names.filter((each) => each === name).length]));

const seeded = new Chance();
const { seed } = seeded;
const chance = () => seeded.next();
console.log(`placement: seed ${seed}`);

describe("a new room is placed", () => {
  test("on the host of two with less of its memory promised", () => {
    expect(chosen([candidate("a", 50), candidate("b", 10), candidate("c", null)])).toBe("b");
    expect(chosen([candidate("c", null)])).toBe("c");
    const three = [candidate("a", 10), candidate("b", 20), candidate("c", 30)];
    const drawn = (number: number) => new HostChoice(() => number).choose(three, WANTED, 1).host_id;
    expect([drawn(0), drawn(0.99)]).toEqual(["a", "b"]);
  });

  test("on a host with enough memory, if there is one", () => {
    const full = ["b", "c", "d", "e"].map((name) => candidate(name, 100));
    for (let n = 0; n < 20; n++) expect(chosen([...full, candidate("a", 99)])).toBe("a");
    expect(["b", "c", "d", "e"]).toContain(chosen(full));
  });

  test("evenly by two hosts with a 3 s old view of each other's load", () => {
    const entries = [new HostChoice(chance), new HostChoice(chance)];
    const idle = ["a", "b"].map((name) => candidate(name, 0));
    const names = Array.from({ length: 40 }, (_, n) => (entries[n % 2] as HostChoice).choose(idle, WANTED, 1).host_id);
    expect(counts(names)).toEqual({ a: 20, b: 20 });
  });

  test("by the rooms placed on a host since its last beat, as long as its load lacks them", () => {
    const choice = new HostChoice(chance);
    const beaten = (beat: string, promised: number) => [{ ...candidate("a", promised), beat }, candidate("b", 10)];
    const place = (candidates: Candidate[], count: number) =>
      counts(Array.from({ length: count }, () => choice.choose(candidates, WANTED, 5).host_id));
    expect(place(beaten("1", 0), 2)).toEqual({ a: 2 });
    expect(place(beaten("1", 0), 4)).toEqual({ a: 2, b: 2 });
    // None of them has sandboxes.
    expect(place(beaten("2", 0), 3)).toEqual({ a: 3 });
    expect(place(beaten("3", 60), 3)).toEqual({ b: 3 });
  });

  test("by 20 hosts on 20, none of which gets many more than the others", () => {
    const idle = Array.from({ length: 20 }, (_, n) => candidate(`h${n}`, 0));
    const entries = idle.map(() => new HostChoice(chance));
    const names = Array.from(
      { length: 200 },
      (_, n) => (entries[n % 20] as HostChoice).choose(idle, WANTED, 1).host_id,
    );
    const most = Math.max(...Object.values(counts(names)));
    expect(most, `seed ${seed}`).toBeLessThan(22);
  });

  test("on no drained, degraded, silent or removed host", () => {
    const open = candidate("e", 99);
    const closed = (["draining", "degraded", "unreachable", "gone"] as const).map((state) =>
      candidate(state, 0, state),
    );
    expect(chosen([...closed, open])).toBe("e");
    expect(() => chosen(closed)).toThrow(expect.objectContaining({ code: "insufficient_capacity" }));
    const silent = candidate("s", 0, "unreachable");
    expect(() => chosen([silent])).toThrow(expect.objectContaining({ code: "host_unreachable" }));
  });

  test("on the named host, or on one with the labels", () => {
    const hosts = [candidate("a", 0), candidate("b", 50, "active", { zone: "b", gpu: "no" })];
    expect(chosen(hosts, { host: "b" })).toBe("b");
    expect(chosen(hosts, { host_labels: { zone: "b" } })).toBe("b");
    for (const requested of [
      { host: "c" },
      { host_labels: { zone: "c" } },
      { host: "a", host_labels: { zone: "b" } },
    ]) {
      expect(() => chosen(hosts, requested)).toThrow(expect.objectContaining({ code: "validation_failed" }));
    }
  });
});
