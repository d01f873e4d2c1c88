import { describe, expect, test } from "vitest";
import { type Candidate, chooseHost } from "../../../daemon/cluster/choose.ts";
import type { HostState, WantedPlace } from "../../../daemon/cluster/directory.ts";
import type { OrgId } from "../../../shared/ids.ts";

const WANTED: WantedPlace = { org_id: "org_1" as OrgId, room_id: "r" };

function candidate(host_id: string, promised: number | null, state: HostState = "active", labels = {}): Candidate {
  const host = { host_id, state, labels, address: "a:1", certificate: "", url: "", joined_at: "" };
  const load = { cpus: 1, rooms: 0, sandboxes: 0, is_degraded: false, templates: [] };
  return { host, load: promised === null ? null : { ...load, memory_mib: { promised, total: 100 } } };
}

const chosen = (candidates: Candidate[], wanted: Partial<WantedPlace> = {}) =>
  chooseHost(candidates, { ...WANTED, ...wanted }).host_id;

describe("a new room is placed", () => {
  test("on the host that has promised the least of its memory", () => {
    expect(chosen([candidate("a", 50), candidate("b", 10), candidate("c", null)])).toBe("b");
    expect(chosen([candidate("c", null)])).toBe("c");
  });

  test("on none that is drained, degraded, silent or gone", () => {
    const open = candidate("e", 99);
    const closed = (["draining", "degraded", "unreachable", "gone"] as const).map((state) =>
      candidate(state, 0, state),
    );
    expect(chosen([...closed, open])).toBe("e");
    expect(() => chosen(closed)).toThrow(expect.objectContaining({ code: "insufficient_capacity" }));
    const silent = candidate("s", 0, "unreachable");
    expect(() => chosen([silent])).toThrow(expect.objectContaining({ code: "host_unreachable" }));
  });

  test("on the one that is named, or has the labels", () => {
    const hosts = [candidate("a", 0), candidate("b", 50, "active", { zone: "b", gpu: "no" })];
    expect(chosen(hosts, { host: "b" })).toBe("b");
    expect(chosen(hosts, { host_labels: { zone: "b" } })).toBe("b");
    for (const wanted of [{ host: "c" }, { host_labels: { zone: "c" } }, { host: "a", host_labels: { zone: "b" } }]) {
      expect(() => chosen(hosts, wanted)).toThrow(expect.objectContaining({ code: "validation_failed" }));
    }
  });
});
