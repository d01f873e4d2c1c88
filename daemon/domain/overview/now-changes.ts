/** The lines for the difference between two states of a room. Pure. */
import type { OutputOf } from "../../../shared/api/contract.ts";
import type { roomNow } from "../../../shared/api/overview/live.ts";

type Line = OutputOf<typeof roomNow>;
export type RoomState = Extract<Line, { type: "now" }>;

/** Empty if both states are equal; otherwise the individual changes, then the whole state as the last line. */
export function changesOf(before: RoomState | null, now: RoomState): Line[] {
  if (before === null) return [now];
  const lines: Line[] = [...commandLines(before, now), ...deadlockLines(before, now)];
  if (lines.length === 0 && (before === now || keyOf(before) === keyOf(now))) return [];
  return [...lines, now];
}

function commandLines(before: RoomState, now: RoomState): Line[] {
  const were = new Set(before.commands.map(({ exec_id }) => exec_id));
  const are = new Set(now.commands.map(({ exec_id }) => exec_id));
  const started = now.commands.filter(({ exec_id }) => !were.has(exec_id));
  const ended = before.commands.filter(({ exec_id }) => !are.has(exec_id));
  return [
    ...started.map((command): Line => ({ type: "command", state: "running", ...command })),
    ...ended.map((command): Line => ({ type: "command", state: "ended", ...command })),
  ];
}

/** Key of a cycle, independent of its first agent. */
const ringOf = (agents: readonly string[]): string => agents.toSorted().join(" ");

function deadlockLines(before: RoomState, now: RoomState): Line[] {
  const were = new Set(before.deadlocks.map(({ agents }) => ringOf(agents)));
  const fresh = now.deadlocks.filter(({ agents }) => !were.has(ringOf(agents)));
  return fresh.map(({ agents, text }): Line => ({ type: "deadlock", agents, text }));
}

/** Cache: clients with the same view share a state object, which may be a megabyte. */
const keys = new WeakMap<RoomState, string>();

/** The comparable part of a state: without the sentences of deadlocks, which contain their age. */
export function keyOf(room: RoomState): string {
  const known = keys.get(room);
  if (known !== undefined) return known;
  const { at: _, deadlocks, ...state } = room;
  const key = JSON.stringify([state, deadlocks.map(({ agents }) => ringOf(agents))]);
  keys.set(room, key);
  return key;
}
