/** Text for people about the waits of agents (for a reply, a barrier, messages or a command) and the deadlocks among them. Pure. */
import type { Cycle, Wait } from "../../../shared/api/overview/overview.ts";

type SummarizedWait = Pick<Wait, "agent_id" | "type" | "id" | "since">;

/** A cycle as one sentence; `waitOf` returns the wait of one agent for the next. */
export function ringText(
  ring: readonly string[],
  waitOf: (from: string, to: string) => SummarizedWait | undefined,
  nowMs: number,
): string {
  const parts = ring.map((from, index) => {
    const to = String(ring[(index + 1) % ring.length]);
    const wait = waitOf(from, to);
    return `${from} waits for ${to}${wait ? ` (${whatText(wait)}, ${agoText(wait.since, nowMs)})` : ""}`;
  });
  return `${parts.join(", ")}.`;
}

/** The whole result in one paragraph. */
export function summaryText(
  waits: readonly Wait[],
  cycles: readonly Cycle[],
  truncated: boolean,
  nowMs: number,
): string {
  const [oldest] = waits;
  if (!oldest) return "No agent is waiting.";
  const agents = new Set(waits.map(({ agent_id }) => agent_id)).size;
  const stuck =
    cycles.length === 0
      ? "No deadlock."
      : `${counted(cycles.length, "deadlock")}: ${cycles.map(({ text }) => text).join(" ")} Agents in a deadlock continue only after one of them replies or arrives.`;
  const longest = `The longest is ${oldest.agent_id}, ${agoText(oldest.since, nowMs)}: ${whatText(oldest)}.`;
  const more = truncated ? " There are more waits than these." : "";
  return `${counted(waits.length, "wait")} of ${counted(agents, "agent")}. ${stuck} ${longest}${more}`;
}

function whatText({ type, id }: SummarizedWait): string {
  if (type === "inbox") return "messages";
  if (type === "reply") return id === null ? "a reply" : `reply to ${id}`;
  return `${type} ${id}`;
}

const UNITS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
] as const;

/** The age of a timestamp, in the largest fitting unit. */
export function agoText(since: string, nowMs: number): string {
  const ms = Math.max(0, nowMs - Date.parse(since));
  const [size, unit] = UNITS.find(([each]) => ms >= each) ?? [1000, "s"];
  return `${Math.floor(ms / size)} ${unit}`;
}

const counted = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`;
