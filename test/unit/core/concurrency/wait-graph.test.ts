import { describe, expect, test, vi } from "vitest";
import { type AgentWait, WaitGraph } from "../../../../daemon/core/concurrency/wait-graph.ts";
import type { ServiceError } from "../../../../daemon/core/service-error.ts";

const ROOM = "rom_1";
const SINCE = "2026-01-01T00:00:00.000Z";

function waitOf(agent_id: string, ...on: string[]): AgentWait {
  const about = () => `${agent_id} ${on.join()}`;
  return { agents: [agent_id], since: SINCE, on: () => on, about, shown: { type: "reply", id: null } };
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
  test("for oneself is a cycle, and so is one through any number of others", () => {
    const graph = new WaitGraph();
    expect(cycleOf(graph, waitOf("a", "a"))).toEqual(["a", "a"]);
    expect(cycleOf(graph, waitOf("a", "b"))).toBeNull();
    expect(cycleOf(graph, waitOf("b", "x", "c"))).toBeNull();
    expect(cycleOf(graph, waitOf("c", "y", "a"))).toEqual(["c", "a", "b", "c"]);
  });

  test("of another room is ignored", () => {
    const graph = new WaitGraph();
    graph.enter(ROOM, waitOf("a", "b"));
    expect(cycleOf(graph, waitOf("b", "a"), "rom_2")).toBeNull();
  });

  test("that has ended blocks no agent; another one of the same agent still does", () => {
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

  test("of several agents together is one wait, in which none of them awaits another", () => {
    const graph = new WaitGraph();
    const together: AgentWait = {
      agents: ["a", "b"],
      since: SINCE,
      on: () => ["c"],
      about: () => "barrier x 1",
      shown: { type: "barrier", id: "x" },
    };
    graph.enter(ROOM, together);
    expect(graph.waitsOf(ROOM, "b")).toEqual([{ type: "barrier", id: "x" }]);
    expect(cycleOf(graph, waitOf("c", "b"))).toEqual(["c", "b", "c"]);
    graph.leave(ROOM, together);
    graph.enter(ROOM, waitOf("c", "b"));
    expect(cycleOf(graph, together)).toEqual(["b", "c", "b"]);
  });

  test("at the end of a long chain is found, for any length", ({ onTestFinished }) => {
    // The look for a cycle has a limit of time.
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const graph = new WaitGraph();
    const LENGTH = 2000;
    for (let index = 1; index < LENGTH; index++) graph.enter(ROOM, waitOf(`a${index}`, `a${index + 1}`));
    expect(cycleOf(graph, waitOf("b", "a1"))).toBeNull();
    expect(cycleOf(graph, waitOf(`a${LENGTH}`, "a1"))).toHaveLength(LENGTH + 1);
  });

  test("ends its search if others form a loop among themselves", () => {
    const graph = new WaitGraph();
    // Two agents that wait at barriers for the same third one form no cycle; their lists may name each other later.
    let missing = ["c"];
    for (const agent of ["a", "b"]) {
      const about = () => `barrier ${agent} 1`;
      graph.enter(ROOM, {
        agents: [agent],
        since: SINCE,
        on: () => missing,
        about,
        shown: { type: "barrier", id: agent },
      });
    }
    missing = ["a", "b"];
    expect(cycleOf(graph, waitOf("z", "a"))).toBeNull();
  });

  test("evaluates a shared target once", () => {
    const graph = new WaitGraph();
    let looks = 0;
    for (let count = 0; count < 100; count++) {
      const on = () => [`${looks++}`];
      graph.enter(ROOM, {
        agents: ["a"],
        since: SINCE,
        on,
        about: () => "barrier x 1",
        shown: { type: "barrier", id: "x" },
      });
    }
    looks = 0;
    graph.enter(ROOM, waitOf("b", "a"));
    expect(looks).toBe(1);
  });
});

describe("concurrent waits", () => {
  const codeOf = (graph: WaitGraph, wait: AgentWait): string | null => {
    try {
      graph.enter(ROOM, wait);
      return null;
    } catch (error) {
      return (error as ServiceError).code;
    }
  };

  test("of an agent are limited to 128, plus as many for messages", () => {
    const graph = new WaitGraph();
    const inbox = (): AgentWait => ({ ...waitOf("a"), about: () => null, shown: { type: "inbox", id: null } });
    const inboxes = Array.from({ length: 128 }, inbox);
    for (const wait of inboxes) graph.enter(ROOM, wait);
    expect(codeOf(graph, inbox())).toBe("quota_exceeded");
    graph.leave(ROOM, inboxes[0] as AgentWait);
    expect(codeOf(graph, inbox())).toBeNull();
    const all = Array.from({ length: 128 }, (_, at) => waitOf("a", `b${at}`));
    for (const wait of all) graph.enter(ROOM, wait);
    expect(codeOf(graph, waitOf("a", "c"))).toBe("quota_exceeded");
    expect(codeOf(graph, { ...waitOf("d", "c"), agents: ["d", "a"] })).toBe("quota_exceeded");
    expect(codeOf(graph, waitOf("d", "c"))).toBeNull();
    // A wait that is already registered is not counted again, and an ended one is not counted.
    expect(codeOf(graph, all[0] as AgentWait)).toBeNull();
    graph.leave(ROOM, all[0] as AgentWait);
    expect(codeOf(graph, waitOf("a", "c"))).toBeNull();
  });

  test("of a room are limited, and those of another room count separately", () => {
    const graph = new WaitGraph();
    const all = Array.from({ length: 2048 }, (_, at) => waitOf(`a${at}`, "z"));
    for (const wait of all) graph.enter(ROOM, wait);
    expect(codeOf(graph, waitOf("b", "z"))).toBe("quota_exceeded");
    expect(cycleOf(graph, waitOf("b", "z"), "rom_2")).toBeNull();
    for (const wait of all) graph.leave(ROOM, wait);
    expect(codeOf(graph, waitOf("b", "z"))).toBeNull();
  });
});
