/** Current activity in a room's sandboxes, as known to the host: running commands, and sandboxes in standby. */
import type { Completions, RunningCommand } from "./executions/completion.ts";
import type { SandboxRow } from "./table.ts";

export interface Going {
  /** Except commands started over SSH: only the guest knows of them. */
  commands: (RunningCommand & { agent_id: string })[];
  /** In memory, or on disk. */
  standby: { agent_id: string; sandbox_id: string; since: string; onDisk: boolean }[];
}

export function goingIn(rows: readonly SandboxRow[], ends: Pick<Completions, "running">): Going {
  return {
    commands: rows.flatMap(({ sandbox_id, agent_id }) =>
      ends.running(sandbox_id).map((command) => ({ ...command, agent_id })),
    ),
    standby: rows
      .filter(({ state }) => state === "paused" || state === "hibernated")
      .map(({ agent_id, sandbox_id, last_transition_at, state }) => ({
        agent_id,
        sandbox_id,
        since: last_transition_at,
        onDisk: state === "hibernated",
      })),
  };
}
