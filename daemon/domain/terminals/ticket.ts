/** Owns what somebody needs to attach to a terminal: where, and the token. */
import type { OutputOf } from "../../../shared/api/contract.ts";
import type { terminalToken } from "../../../shared/api/terminals.ts";
import type { KeyCall } from "../../core/operation.ts";
import type { TerminalTarget } from "./deps.ts";
import type { Tokens } from "./tokens.ts";

export function ticketOf(
  tokens: Tokens,
  call: KeyCall,
  { room, row }: TerminalTarget,
  terminalId: string,
): OutputOf<typeof terminalToken> {
  const place = ["rooms", room.room_id, "sandboxes", row.agent_id, "terminals", terminalId, "ws"];
  return {
    terminal_id: terminalId,
    ws_path: `/v1/${place.map(encodeURIComponent).join("/")}`,
    ...tokens.make(call.caller, row.sandbox_id, terminalId),
  };
}
