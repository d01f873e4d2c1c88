/** Operation that opens a terminal. */
import type { InputOf } from "../../../shared/api/contract.ts";
import { DEFAULT_TERM, terminalCreate } from "../../../shared/api/terminals.ts";
import { newId } from "../../../shared/ids.ts";
import { type Bound, bind, type RuleBreak } from "../../core/call/operation.ts";
import type { Tickets } from "../../core/call/tickets.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import { listTerminals, openTerminal } from "../../host/guest-link/terminal.ts";
import type { TerminalDeps, TerminalGoal } from "./deps.ts";
import { asServiceError } from "./errors.ts";
import { ticketOf } from "./ticket.ts";

type Input = InputOf<typeof terminalCreate>;

export function makeCreate({ sandboxes, detachedLifeMs }: TerminalDeps, tickets: Tickets<TerminalGoal>): Bound {
  return bind(terminalCreate, {
    find: (call, params) => sandboxes.find(call, params),
    rules,
    run: async (call, input, target) => {
      const terminal_id = newId("ter", call.work.ulid);
      call.audit.details = { terminal_id, user: input.user ?? "root" };
      const { rows, cols, user = null, cwd = null, term = DEFAULT_TERM } = input;
      sandboxes.requireDriveFor(target, cwd);
      await sandboxes.withLink(target, async (link) => {
        // A retry after a crash finds the terminal that the earlier attempt opened.
        const isAgain = call.work.ulid !== undefined && (await hasTerminal(link, terminal_id));
        if (isAgain) return;
        const settings = { argv: argvOf(input), cwd, env: {}, user, term, rows, cols };
        const spec = { terminal_id, ...settings, detached_life_ms: detachedLifeMs };
        await openTerminal(link, spec).catch((error: unknown) => {
          throw sandboxes.heldInstead(target, asServiceError(error, target, input));
        });
      });
      return { outcome: "created", body: ticketOf(tickets, call, target, terminal_id) };
    },
  });
}

async function hasTerminal(link: GuestLink, terminalId: string): Promise<boolean> {
  const terminals = await listTerminals(link).catch(() => []);
  return terminals.some(({ terminal_id }) => terminal_id === terminalId);
}

function argvOf({ argv, command }: Input): string[] | null {
  return argv ?? (command === undefined ? null : ["/bin/sh", "-c", command]);
}

function rules(input: Partial<Input>): RuleBreak[] {
  const broken: RuleBreak[] = [];
  const invalid = (field: string, message: string) => broken.push({ field, code: "invalid_command", message });
  const { argv, command, cwd } = input;
  if (argv !== undefined && command !== undefined) invalid("command", "Send either argv or command, not both.");
  const words = [...(argv ?? []), ...(command === undefined ? [] : [command])];
  const field = argv === undefined ? "command" : "argv";
  if (words.some((word) => word.includes("\0"))) invalid(field, `${field} has a NUL character.`);
  if (argv?.[0] === "") invalid("argv[0]", "The command is empty.");
  if (cwd !== undefined && (!cwd.startsWith("/") || cwd.includes("\0"))) {
    broken.push({ field: "cwd", code: "pattern", message: "cwd must be an absolute path." });
  }
  return broken;
}
