/** The states of a sandbox: every one can be reached, left and destroyed, and each has its way to an end. */
import { describe, expect, test } from "vitest";
import {
  actsIn,
  mayTake,
  overdueFor,
  requireState,
  STATE_DEADLINES_MS,
  sourcesOf,
  VERBS,
  type VerbName,
} from "../../../../../daemon/domain/sandboxes/lifecycle/state.ts";
import { SANDBOX_STATES, type SandboxState } from "../../../../../shared/api/sandboxes.ts";

const NAMES = Object.keys(VERBS) as VerbName[];
const nextOf = (from: SandboxState) => SANDBOX_STATES.filter((to) => NAMES.some((verb) => mayTake(verb, from, to)));
const canBecome = (from: SandboxState, to: SandboxState) => nextOf(from).includes(to);

test("every state is reachable from the first", () => {
  const reached = new Set<SandboxState>(["creating"]);
  for (const state of reached) for (const next of nextOf(state)) reached.add(next);
  expect([...reached].sort()).toEqual([...SANDBOX_STATES].sort());
});

test.each(SANDBOX_STATES.filter((state) => state !== "destroyed"))("%s can be destroyed", (state) => {
  const ways = nextOf(state);
  expect(ways.includes("destroying") || ways.includes("destroyed")).toBe(true);
});

test("standby and resume follow their path, and go back only while the guest still runs", () => {
  const way: SandboxState[] = ["running", "pausing", "paused", "resuming", "running"];
  for (const [index, state] of way.slice(1).entries()) expect(canBecome(way[index] ?? "failed", state)).toBe(true);
  expect(canBecome("pausing", "running")).toBe(true);
  for (const [from, to] of [
    ["running", "paused"],
    ["paused", "running"],
    ["paused", "pausing"],
    ["failed", "resuming"],
  ] as const) {
    expect(canBecome(from, to)).toBe(false);
  }
});

test("destroyed is final, and failed leads only to destroyed", () => {
  expect([nextOf("destroyed"), nextOf("failed"), nextOf("destroying")]).toEqual([[], ["destroyed"], ["destroyed"]]);
});

test("only fail fails a sandbox and only destroy destroys one", () => {
  for (const verb of NAMES) {
    expect(sourcesOf(verb, "failed").length > 0).toBe(verb === "fail");
    expect(sourcesOf(verb, "destroyed").length > 0 || sourcesOf(verb, "destroying").length > 0).toBe(
      verb === "destroy",
    );
  }
});

test.each(NAMES)(
  "%s acts only in the states from which its transitions start, or in which it changes nothing",
  (verb) => {
    const begins = SANDBOX_STATES.filter((from) => SANDBOX_STATES.some((to) => mayTake(verb, from, to)));
    const acts = SANDBOX_STATES.filter((state) => actsIn(verb, state));
    // States that it passes on its way are results of its own earlier steps.
    const reached = new Set(acts);
    for (const from of reached) for (const to of SANDBOX_STATES) if (mayTake(verb, from, to)) reached.add(to);
    expect(begins.filter((state) => !reached.has(state))).toEqual([]);
  },
);

describe("requireState", () => {
  test("accepts an allowed state", () => {
    expect(() => requireState({ agent_id: "a", state: "paused" }, ["running", "paused"])).not.toThrow();
  });

  test("names the state and the allowed ones, and for a paused sandbox the remedy", () => {
    expect(() => requireState({ agent_id: "a", state: "paused" }, ["running"])).toThrow(
      expect.objectContaining({
        code: "invalid_state",
        options: expect.objectContaining({
          details: { state: "paused", allowed_states: ["running"] },
          hint: expect.stringContaining("{{sandbox_resume sandbox=a}}"),
        }),
      }),
    );
  });
});

test("every transitional state has a deadline, and no other has one", () => {
  const onTheWay = SANDBOX_STATES.filter((state) => state.endsWith("ing") && state !== "running");
  expect(Object.keys(STATE_DEADLINES_MS).sort()).toEqual([...onTheWay].sort());
  for (const [state, deadlineMs] of Object.entries(STATE_DEADLINES_MS)) {
    expect(overdueFor(state as SandboxState, deadlineMs)).toBe(null);
    expect(overdueFor(state as SandboxState, deadlineMs + 1)).toBe(1);
  }
  expect(overdueFor("running", Number.MAX_SAFE_INTEGER)).toBe(null);
});
