import { describe, expect, test } from "vitest";
import type { ServiceError } from "../../../daemon/core/service-error.ts";
import { type AgentWait, WaitGraph } from "../../../daemon/core/wait-graph.ts";

const ROOM = "rom_1";

function waitOf(agent_id: string, ...on: string[]): AgentWait {
  return { agent_id, on: () => on, shown: { type: "reply", id: null } };
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

  test("ends its search where others go round among themselves", () => {
    const graph = new WaitGraph();
    // Two who wait at a barrier for the same third form no cycle; their lists may name each other later.
    let missing = ["c"];
    graph.enter(ROOM, { agent_id: "a", on: () => missing, shown: { type: "barrier", id: "x" } });
    graph.enter(ROOM, { agent_id: "b", on: () => missing, shown: { type: "barrier", id: "x" } });
    missing = ["a", "b"];
    expect(cycleOf(graph, waitOf("z", "a"))).toBeNull();
  });
});
