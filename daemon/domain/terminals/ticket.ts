/** Data for attaching to a terminal: the URL path, and the token. */
import type { OutputOf } from "../../../shared/api/contract.ts";
import type { terminalToken } from "../../../shared/api/terminals.ts";
import type { KeyCall } from "../../core/call/operation.ts";
import type { Tickets } from "../../core/call/tickets.ts";
import type { TerminalGoal, TerminalTarget } from "./deps.ts";

export function ticketOf(
  tickets: Tickets<TerminalGoal>,
  call: KeyCall,
  { room, row }: TerminalTarget,
  terminalId: string,
): OutputOf<typeof terminalToken> {
  const place = ["rooms", room.room_id, "sandboxes", row.agent_id, "terminals", terminalId, "ws"];
  return {
    terminal_id: terminalId,
    ws_path: `/v1/${place.map(encodeURIComponent).join("/")}`,
    ...tickets.make("ttk_", call.caller, { sandbox_id: row.sandbox_id, terminal_id: terminalId }),
  };
}
