/** `roomd barrier`: rendezvous points of the agents of a room. */
import type { Command } from "commander";
import { barrierArrive, barrierCancel, barrierGet, barrierList } from "../../../../shared/api/barriers.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup, timeout } from "../../kit/command.ts";
import { type JsonOption, show } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { integer } from "../../kit/values.ts";
import { columns, verb } from "../../kit/verb.ts";

const DEFAULT_MS = 60_000;

export function barrierCommand(): Command {
  return commandGroup("barrier", {
    summary: "barriers, at which agents wait for each other",
    examples: ["roomd barrier build-42 merged operator --parties 3", "roomd barrier list build-42"],
  })
    .addCommand(arrive(), { isDefault: true })
    .addCommand(
      verb(barrierList, "list <room>", "list a room's barriers, the newest generation of each", {
        examples: ["roomd barrier list build-42"],
        lines: columns(
          ["BARRIER", (item) => item.barrier_id],
          ["GENERATION", (item) => item.generation],
          ["STATE", (item) => item.state],
          ["PARTIES", (item) => item.parties],
          ["ARRIVED", (item) => item.arrived.join(" ")],
          ["MISSING", (item) => item.missing.join(" ")],
        ),
      }),
    )
    .addCommand(
      verb(barrierGet, "get <room> <barrier>", "print a barrier with its arrived and missing agents", {
        examples: ["roomd barrier get build-42 merged"],
        lines: recordLines,
      }),
    )
    .addCommand(
      verb(barrierCancel, "cancel <room> <barrier>", "cancel a barrier: every wait at it ends", {
        examples: ["roomd barrier cancel build-42 merged"],
        lines: ({ generation, state }, { barrier_id }) => [`barrier ${barrier_id} ${generation} is ${state}`],
      }),
    );
}

interface ArriveOptions extends JsonOption {
  parties?: number;
  with?: string;
  generation?: number;
  timeout?: number;
}

function arrive(): Command {
  return command("arrive <room> <barrier> <agent>", {
    summary:
      "arrive at a barrier as this agent, or several (a,b), and wait for the others (the default of `roomd barrier`)",
    examples: [
      "roomd barrier arrive build-42 merged operator --parties 3",
      "roomd barrier build-42 merged operator --with operator,worker-1 --timeout 5m",
    ],
  })
    .option("--parties <n>", "how many agents have to arrive", integer(1))
    .option("--with <agents>", "names of the agents that have to arrive, separated by commas")
    .option("--generation <n>", "the generation of the barrier, if it may already be over", integer(1))
    .addOption(timeout("how long to wait, at most 5m; 0: do not wait (default: 60s)"))
    .action(async (room_id: string, barrier_id: string, agents: string, options: ArriveOptions) => {
      const { parties, generation } = options;
      const agentFields = agents.includes(",") ? { arrivals: agents.split(",") } : { agent_id: agents };
      const participants = options.with?.split(",");
      const timeout_ms = options.timeout ?? DEFAULT_MS;
      const arrival = { room_id, barrier_id, ...agentFields, parties, participants, generation, timeout_ms };
      const reply = await withProgress(`waiting at barrier ${barrier_id}`, () => call(barrierArrive, arrival));
      await show(reply, options, (now) => [`barrier ${barrier_id} ${now.generation} is ${now.state}`]);
    });
}
