import { describe, expect, test } from "vitest";
import type { ServiceError } from "../../../daemon/core/service-error.ts";
import { type AgentWait, WaitGraph } from "../../../daemon/core/wait-graph.ts";

const ROOM = "rom_1";
const SINCE = "2026-01-01T00:00:00.000Z";

function waitOf(agent_id: string, ...on: string[]): AgentWait {
  return { agents: [agent_id], since: SINCE, on: () => on, shown: { type: "reply", id: null } };
}

function cycleOf(graph: WaitGraph, wait: AgentWait, room = ROOM): unknown {
  try {
    graph.enter(room, wait);
    return null;
  } catch (error) {
    return (error as ServiceError).options.details?.cycle;
  }
}

describe("a wait", () => {
  test("for oneself, and round any number of others, is a cycle", () => {
    const graph = new WaitGraph();
    expect(cycleOf(graph, waitOf("a", "a"))).toEqual(["a", "a"]);
    expect(cycleOf(graph, waitOf("a", "b"))).toBeNull();
    expect(cycleOf(graph, waitOf("b", "x", "c"))).toBeNull();
    expect(cycleOf(graph, waitOf("c", "y", "a"))).toEqual(["c", "a", "b", "c"]);
  });

  test("of another room is none of this one's business", () => {
    const graph = new WaitGraph();
    graph.enter(ROOM, waitOf("a", "b"));
    expect(cycleOf(graph, waitOf("b", "a"), "rom_2")).toBeNull();
  });

  test("that has ended holds up nobody; another of the same agent still does", () => {
    const graph = new WaitGraph();
    const [one, two] = [waitOf("a", "b"), waitOf("a", "b")];
    graph.enter(ROOM, one);
    graph.enter(ROOM, two);
    graph.leave(ROOM, one);
    expect(cycleOf(graph, waitOf("b", "a"))).toEqual(["b", "a", "b"]);
    graph.leave(ROOM, two);
    graph.leave(ROOM, two);
    expect(cycleOf(graph, waitOf("b", "a"))).toBeNull();
    expect(graph.waitsOf(ROOM, "a")).toEqual([]);
  });

  test("of several together is one, which none of them is waited for in", () => {
    const graph = new WaitGraph();
    const together: AgentWait = {
      agents: ["a", "b"],
      since: SINCE,
      on: () => ["c"],
      shown: { type: "barrier", id: "x" },
    };
    graph.enter(ROOM, together);
    expect(graph.waitsOf(ROOM, "b")).toEqual([{ type: "barrier", id: "x" }]);
    expect(cycleOf(graph, waitOf("c", "b"))).toEqual(["c", "b", "c"]);
    graph.leave(ROOM, together);
    graph.enter(ROOM, waitOf("c", "b"));
    expect(cycleOf(graph, together)).toEqual(["b", "c", "b"]);
  });

  test("at the end of a long line is found out, however long", () => {
    const graph = new WaitGraph();
    const LENGTH = 10_000;
    for (let index = 1; index < LENGTH; index++) graph.enter(ROOM, waitOf(`a${index}`, `a${index + 1}`));
    expect(cycleOf(graph, waitOf("b", "a1"))).toBeNull();
    expect(cycleOf(graph, waitOf(`a${LENGTH}`, "a1"))).toHaveLength(LENGTH + 1);
  });

  test("ends its search where others go round among themselves", () => {
    const graph = new WaitGraph();
    // Two who wait at a barrier for the same third form no cycle; their lists may name each other later.
    let missing = ["c"];
    graph.enter(ROOM, { agents: ["a"], since: SINCE, on: () => missing, shown: { type: "barrier", id: "x" } });
    graph.enter(ROOM, { agents: ["b"], since: SINCE, on: () => missing, shown: { type: "barrier", id: "x" } });
    missing = ["a", "b"];
    expect(cycleOf(graph, waitOf("z", "a"))).toBeNull();
  });
});
