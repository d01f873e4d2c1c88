/** Owns `roomd logs`: what a sandbox's console or agent wrote. */
import type { Command } from "commander";
import { sandboxLogs } from "../../shared/api/sandboxes.ts";
import { call } from "./client.ts";
import { choice, command, type JsonOption } from "./command.ts";
import { printable, show } from "./output.ts";
import { integer } from "./values.ts";

interface LogsOptions extends JsonOption {
  source?: "console" | "agent";
  after?: number;
  limit?: number;
}

export function logsCommand(): Command {
  return command("logs <room> <agent>", {
    summary: "print a sandbox's log",
    examples: ["roomd logs build-42 worker-1", "roomd logs build-42 worker-1 --source agent --limit 20"],
  })
    .addOption(choice("--source <which>", "whose log (default: console)", ["console", "agent"]))
    .option("--after <offset>", "from this byte on: next_after of the answer before", integer(0))
    .option("--limit <lines>", "most lines to print", integer(1))
    .action(async (room_id: string, sandbox: string, { json, ...query }: LogsOptions) => {
      const reply = await call(sandboxLogs, { room_id, sandbox, ...query });
      // A guest chooses these bytes, and a terminal would obey some of them.
      const shown = process.stdout.isTTY ? printable : (line: string) => line;
      await show(reply, { json }, ({ items }) => items.map(({ line }) => shown(line)));
    });
}
