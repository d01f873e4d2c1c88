/** `roomd logs`: the log of a sandbox's console or agent. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { sandboxLogs } from "../../../../shared/api/sandboxes.ts";
import { call, LASTING } from "../../kit/client.ts";
import { choice, command } from "../../kit/command.ts";
import { type JsonOption, printable, show } from "../../kit/output.ts";
import { integer } from "../../kit/values.ts";

interface LogsOptions extends JsonOption {
  source?: "console" | "agent";
  after?: number;
  limit?: number;
  follow?: boolean;
}

const LOOK_EVERY_MS = 500;

export function logsCommand(): Command {
  return command("logs <room> <agent>", {
    summary: "print a sandbox's log",
    examples: [
      "roomd logs build-42 worker-1",
      "roomd logs build-42 worker-1 --source agent --limit 20",
      "roomd logs build-42 worker-1 -f",
    ],
  })
    .addOption(choice("--source <which>", "source of the log (default: console)", ["console", "agent"]))
    .option("--after <offset>", "start at this byte: next_after of the previous answer", integer(0))
    .option("--limit <lines>", "maximum number of lines per request", integer(1))
    .option("-f, --follow", "follow the log, until ctrl-c")
    .action(async (room_id: string, sandbox: string, { json, follow, ...query }: LogsOptions) => {
      // The guest controls these bytes: on a terminal, control characters are escaped.
      const shown = process.stdout.isTTY ? printable : (line: string) => line;
      for (let after = query.after; ; ) {
        const hasBegun = follow && after !== query.after;
        const reply = await call(
          sandboxLogs,
          { room_id, sandbox, ...query, after },
          hasBegun ? { retry: LASTING } : {},
        );
        if (!follow || reply.value.items.length > 0) {
          await show(reply, { json }, ({ items }) => items.map(({ line }) => shown(line)));
        }
        if (!follow) return;
        const hasMore = reply.value.next_after !== after && reply.value.items.length > 0;
        after = reply.value.next_after;
        if (!hasMore) await sleep(LOOK_EVERY_MS);
      }
    });
}
