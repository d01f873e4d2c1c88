/** `roomd shell`: a terminal in a sandbox, on the local terminal. */
import { constants } from "node:os";
import type { Command } from "commander";
import { terminalCreate } from "../../../../shared/api/terminals.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { type JsonOption, say } from "../../kit/output.ts";
import { withoutProgress, withProgress } from "../../kit/progress.ts";
import { LocalTerminal } from "./shell-local.ts";
import { type Outcome, ShellSession } from "./shell-session.ts";

interface ShellOptions extends JsonOption {
  user?: string;
  cwd?: string;
  attach?: string;
}

export function shellCommand(setStatus: (status: number) => void): Command {
  return command("shell <room> <agent> [command...]", {
    summary: "open a terminal in a sandbox",
    notes: [
      "Without a command it is the user's login shell. A lost connection is restored by itself, also after a restart",
      "of the service. At the beginning of a line ~. leaves, ~~ types a ~, and ~? prints this help. A terminal that was left keeps",
      "running for 10 minutes (terminal.detached_life); --attach returns to it.",
      "",
      "Exit status: the shell's own; 128+n when signal n ended it; 0 when it was left; 125 when roomd failed.",
    ],
    examples: [
      "roomd shell build-42 worker-1",
      "roomd shell build-42 worker-1 --user agent --cwd /mnt/drive",
      "roomd shell build-42 worker-1 -- top -d 1",
      "roomd shell build-42 worker-1 --attach ter_01JZ8Q4W5T6Y7V8X9ZABCDEFGH",
    ],
  })
    .option("--user <user>", "user name or id (default: root)")
    .option("--cwd <dir>", "working directory in the sandbox (default: the user's home)")
    .option("--attach <terminal>", "return to a terminal that was left, disconnecting its other client")
    .action(async (room_id: string, sandbox: string, argv: string[], options: ShellOptions) => {
      setStatus(await openShell(room_id, sandbox, argv, options));
    });
}

/** Runs a sandbox's terminal in the local one; resolves with the exit status. */
export async function openShell(
  room_id: string,
  sandbox: string,
  argv: string[],
  options: Omit<ShellOptions, "json">,
): Promise<number> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw new CliError(
      "Standard input and output are not a terminal, which a shell needs. `roomd exec` without --tty runs a command without one.",
    );
  }
  const local = new LocalTerminal();
  const terminal_id =
    options.attach ??
    (await withProgress("opening a terminal", async () => {
      const { cwd, user } = options;
      const program = argv.length === 0 ? {} : { argv };
      const { value } = await call(terminalCreate, {
        room_id,
        sandbox,
        ...local.size,
        ...program,
        cwd,
        user,
        term: termOf(),
      });
      return value.terminal_id;
    }));
  const session = new ShellSession({ room_id, sandbox, terminal_id }, local);
  const outcome = await withoutProgress(() => session.run());
  if (outcome.kind === "left") {
    await say(
      `roomd: left; \`roomd shell ${room_id} ${sandbox} --attach ${terminal_id}\` returns to it, for 10 minutes by default`,
    );
  }
  return statusOf(outcome);
}

/** The local TERM, if the API accepts its value. */
function termOf(): string | undefined {
  const { TERM = "" } = process.env;
  return /^[A-Za-z0-9][\w.+-]{0,63}$/.test(TERM) ? TERM : undefined;
}

function statusOf(outcome: Outcome): number {
  if (outcome.kind === "left") return EXIT.ok;
  if (outcome.exit_code !== null) return outcome.exit_code;
  const number = Object.entries(constants.signals).find(([name]) => name === outcome.signal)?.[1];
  return number === undefined ? EXIT.roomd : EXIT.signal + number;
}
