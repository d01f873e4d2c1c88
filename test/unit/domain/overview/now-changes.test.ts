/** The lines that describe changes of a room's state. */
import { expect, test } from "vitest";
import { changesOf, type RoomState } from "../../../../daemon/domain/overview/now-changes.ts";

const AT = "2026-01-01T00:00:00.000Z";
const EMPTY: RoomState = { type: "now", at: AT, waits: [], commands: [], deadlocks: [], truncated: false };
const COMMAND = { agent_id: "worker", exec_id: "e1", command: "sleep 8", since: AT };

test("the first line is the state, and an unchanged state is not repeated", () => {
  expect(changesOf(null, EMPTY)).toEqual([EMPTY]);
  expect(changesOf(EMPTY, { ...EMPTY, at: "2026-01-01T00:00:01.000Z" })).toEqual([]);
});

test("a command is reported at its start and its end", () => {
  const running = { ...EMPTY, commands: [COMMAND] };
  expect(changesOf(EMPTY, running)).toEqual([{ type: "command", state: "running", ...COMMAND }, running]);
  expect(changesOf(running, EMPTY)).toEqual([{ type: "command", state: "ended", ...COMMAND }, EMPTY]);
});

test("a deadlock is reported once, for any order of agents and any age in its text", () => {
  const stuck = (agents: string[], text: string) => ({ ...EMPTY, deadlocks: [{ agents, text }] });
  const [one, other] = [stuck(["a", "b"], "1 s"), stuck(["b", "a"], "2 s")];
  expect(changesOf(EMPTY, one)).toEqual([{ type: "deadlock", agents: ["a", "b"], text: "1 s" }, one]);
  expect(changesOf(one, other)).toEqual([]);
  expect(changesOf(one, EMPTY)).toEqual([EMPTY]);
});
