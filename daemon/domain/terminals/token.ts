/** Operation that creates another token for a terminal. */
import { terminalToken } from "../../../shared/api/terminals.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import type { Tickets } from "../../core/call/tickets.ts";
import type { TerminalDeps, TerminalGoal } from "./deps.ts";
import { requireTerminal } from "./get.ts";
import { ticketOf } from "./ticket.ts";

export function makeToken({ sandboxes }: TerminalDeps, tickets: Tickets<TerminalGoal>): Bound {
  return bind(terminalToken, {
    find: (call, params) => sandboxes.find(call, params),
    run: async (call, { terminal_id }, target) => {
      call.audit.details = { terminal_id };
      await requireTerminal(sandboxes, target, terminal_id);
      return { outcome: "created", body: ticketOf(tickets, call, target, terminal_id) };
    },
  });
}
