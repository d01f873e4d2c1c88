/** Owns the call that attaches a client to a terminal, by key or by the terminal's own token. */
import { terminalAttach } from "../../../shared/api/terminals.ts";
import { type Bound, bind, trialCall } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import { attachTerminal } from "../../host/guest-link/terminal.ts";
import type { TerminalDeps } from "./deps.ts";
import { asServiceError } from "./errors.ts";
import { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import type { Kept, Tokens } from "./tokens.ts";

export function makeAttach(deps: TerminalDeps, tokens: Tokens, sessions: Sessions): Bound {
  const { sandboxes } = deps;
  /** Whether a token is one of this terminal in this sandbox, which may have had another's name before. */
  const opens = ({ caller, sandbox_id, terminal_id }: Kept, params: Record<string, string>): boolean => {
    if (terminal_id !== params.terminal_id || !deps.isCurrentKey(caller.key_id)) return false;
    try {
      return sandboxes.find(trialCall(caller), params).row.sandbox_id === sandbox_id;
    } catch {
      return false;
    }
  };
  return bind(terminalAttach, {
    admit: (token, params) => {
      const kept = tokens.find(token);
      if (!kept || !opens(kept, params)) {
        throw new ServiceError("invalid_api_key", {
          detail: "The token is not valid for this terminal, or has expired.",
        });
      }
      return kept.caller;
    },
    find: (call, params) => sandboxes.find(call, params),
    run: async (call, { terminal_id, since, takeover = false }, target, transfer) => {
      call.audit.details = { terminal_id };
      if (!transfer.websocket) {
        const message = "This needs a WebSocket handshake: Upgrade: websocket.";
        throw new ServiceError("validation_failed", {
          detail: message,
          errors: [{ field: "Upgrade", code: "required", message }],
        });
      }
      const { sandbox_id } = target.row;
      const terminal = await sandboxes.withLink(target, (link) =>
        attachTerminal(link, { terminal_id, since: since ?? null, takeover }).catch((error: unknown) => {
          throw asServiceError(error, target, { terminal_id });
        }),
      );
      const session = new Session(terminal, Math.max(0, terminal.offset - (since ?? 0)));
      sessions.keep(call, sandbox_id, terminal_id, session);
      call.audit.details = { terminal_id, offset: terminal.offset, takeover };
      return { outcome: "attached", conversation: session };
    },
  });
}
