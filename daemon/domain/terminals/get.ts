/** Operations that show terminals, as reported by the guest agent. */
import type { TerminalState } from "../../../shared/agent-protocol/messages.ts";
import type { OutputOf } from "../../../shared/api/contract.ts";
import { terminalGet, terminalList } from "../../../shared/api/terminals.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { at } from "../../core/clock.ts";
import { listTerminals } from "../../host/guest-link/terminal.ts";
import type { SandboxAccess, TerminalDeps, TerminalTarget } from "./deps.ts";
import { asServiceError, terminalNotFound } from "./errors.ts";

export function makeGet({ sandboxes }: TerminalDeps): Bound[] {
  return [
    bind(terminalList, {
      find: (call, params) => sandboxes.find(call, params),
      run: async (_call, _input, target) => {
        const items = (await statesOf(sandboxes, target)).map(toRecord);
        return { outcome: "ok", body: { items, next_cursor: null } };
      },
    }),
    bind(terminalGet, {
      find: (call, params) => sandboxes.find(call, params),
      run: async (_call, { terminal_id }, target) => ({
        outcome: "ok",
        body: toRecord(await requireTerminal(sandboxes, target, terminal_id)),
      }),
    }),
  ];
}

/** Throws execution_not_found. */
export async function requireTerminal(
  sandboxes: SandboxAccess,
  target: TerminalTarget,
  terminalId: string,
): Promise<TerminalState> {
  const found = (await statesOf(sandboxes, target)).find(({ terminal_id }) => terminal_id === terminalId);
  if (!found) throw terminalNotFound(target.row.agent_id, terminalId);
  return found;
}

function statesOf(sandboxes: SandboxAccess, target: TerminalTarget): Promise<TerminalState[]> {
  return sandboxes.withLink(target, (link) =>
    listTerminals(link).catch((error: unknown) => {
      throw asServiceError(error, target, {});
    }),
  );
}

function toRecord({ started_at_ms, end, ...state }: TerminalState): OutputOf<typeof terminalGet> {
  return {
    ...state,
    state: end === null ? "running" : "ended",
    exit_code: end?.exit_code ?? null,
    signal: end?.signal ?? null,
    end_reason: end === null ? null : (end.reason ?? "exited"),
    created_at: at(started_at_ms),
    ended_at: end === null ? null : at(end.ended_at_ms),
  };
}
