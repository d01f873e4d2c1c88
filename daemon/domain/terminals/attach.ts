/** Operation that attaches a client to a terminal, by key or by the terminal's own token. */
import { terminalAttach } from "../../../shared/api/terminals.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import type { Tickets } from "../../core/call/tickets.ts";
import { requireWebSocket } from "../../core/concurrency/duplex-session.ts";
import { ownerOf } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import { attachTerminal } from "../../host/guest-link/terminal.ts";
import type { TerminalDeps, TerminalGoal } from "./deps.ts";
import { asServiceError } from "./errors.ts";
import { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";

export function makeAttach(deps: TerminalDeps, tickets: Tickets<TerminalGoal>, sessions: Sessions): Bound {
  const { sandboxes } = deps;
  return bind(terminalAttach, {
    admit: (token, params) => {
      const kept = tickets.open(token, params, deps);
      if (kept === null || kept.goal.terminal_id !== params.terminal_id) {
        throw new ServiceError("invalid_api_key", {
          detail: "The token is not valid for this terminal, or has expired.",
        });
      }
      return kept.caller;
    },
    find: (call, params) => sandboxes.find(call, params),
    run: async (call, { terminal_id, since, takeover = false }, target, transfer) => {
      call.audit.details = { terminal_id };
      requireWebSocket(transfer);
      const { sandbox_id } = target.row;
      const attach = (link: GuestLink) =>
        attachTerminal(link, { terminal_id, since: since ?? null, takeover }).catch((error: unknown) => {
          throw asServiceError(error, target, { terminal_id });
        });
      const terminal = await sandboxes.withLink(target, attach, "terminal");
      const gap = Math.max(0, terminal.offset - (since ?? 0));
      const session = new Session(terminal, gap, ownerOf(call.caller.org_id));
      sessions.keep(call, sandbox_id, terminal_id, session);
      call.audit.details = { terminal_id, offset: terminal.offset, takeover };
      return { outcome: "attached", conversation: session };
    },
  });
}
