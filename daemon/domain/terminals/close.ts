/** Operation that ends a terminal. */
import { terminalClose } from "../../../shared/api/terminals.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { closeTerminal } from "../../host/guest-link/terminal.ts";
import type { TerminalDeps } from "./deps.ts";
import { asServiceError } from "./errors.ts";

export function makeClose({ sandboxes }: TerminalDeps): Bound {
  return bind(terminalClose, {
    find: (call, params) => sandboxes.find(call, params),
    run: async (call, { terminal_id }, target) => {
      call.audit.details = { terminal_id };
      const { exit_code, signal } = await sandboxes.withLink(target, (link) =>
        closeTerminal(link, terminal_id, true).catch((error: unknown) => {
          throw asServiceError(error, target, { terminal_id });
        }),
      );
      call.audit.details = { terminal_id, exit_code, signal };
      return { outcome: "ended", body: { terminal_id, state: "ended" as const, exit_code, signal } };
    },
  });
}
