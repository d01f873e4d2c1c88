/** Owns `roomd audit export` and `roomd audit follow`: records a line each, all that there are, or as they come. */
import type { Command } from "commander";
import * as audit from "../../shared/api/audit.ts";
import { asked, type FilterOptions, type WhoseOptions, withFilters, withWhose } from "./audit-filters.ts";
import { CliError } from "./cli-error.ts";
import { send } from "./client.ts";
import { choice, command, type JsonOption } from "./command.ts";
import { eventsOf, mayComeBack } from "./exec-follow.ts";
import { print, printable, write } from "./output.ts";
import { integer } from "./values.ts";

const LINES = { accept: "application/x-ndjson" };
const PAUSE_MS = 1000;

export function auditExportCommand(): Command {
  const about = {
    summary: "print every record that matches, a line of JSON each",
    examples: ["roomd audit export --org > audit.ndjson", "roomd audit export build-42 --event exec. | jq .details"],
  };
  return withFilters(command("export [room]", about))
    .addOption(choice("--order <order>", "the oldest or the newest first (default: asc)", ["asc", "desc"]))
    .action(async (room: string | undefined, options: FilterOptions & JsonOption & { order?: "asc" | "desc" }) => {
      const { json: _, order = "asc", ...filters } = options;
      const { room_id, query } = asked(room, filters);
      const response =
        room_id === undefined
          ? await send(audit.orgAuditList, { org_id: "self", order, ...query }, { headers: LINES })
          : await send(audit.auditList, { room_id, order, ...query }, { headers: LINES });
      for await (const part of response.body ?? []) await write(process.stdout, part);
    });
}

export function auditFollowCommand(): Command {
  const about = {
    summary: "print records as they come, until ctrl-c or the room's end",
    examples: ["roomd audit follow build-42", "roomd audit follow --org --json", "roomd audit follow --org --after 0"],
  };
  return withWhose(command("follow [room]", about))
    .option("--after <seq>", "from this record on (default: from now on)", integer(0))
    .action(async (room: string | undefined, { json, after, ...whose }: FollowOptions) => {
      const { room_id } = asked(room, whose);
      for (let last = after; ; ) {
        try {
          const response =
            room_id === undefined
              ? await send(audit.orgEvents, { org_id: "self", after: last })
              : await send(audit.roomEvents, { room_id, after: last });
          for await (const event of eventsOf(response)) {
            if (event.type === "error") throw new CliError(endOf(event.code));
            if (event.type === "ping") continue;
            last = Number(event.seq);
            await print(json ? JSON.stringify(event) : line(event as audit.AuditRecord));
          }
          if (room_id !== undefined) return;
        } catch (error) {
          // A service that is restarted comes back; what was missed is known by its seq.
          if (last === undefined || !mayComeBack(error)) throw error;
        }
        await Bun.sleep(PAUSE_MS);
      }
    });
}

interface FollowOptions extends JsonOption, WhoseOptions {
  after?: number;
}

/** As a refusal of the same code would say it. */
function endOf(code: unknown) {
  const retryable = code === "shutting_down";
  return { detail: `The stream ended: ${code}.`, code: code as "internal", retryable, errors: [], hint: null };
}

function line({ seq, at, event, outcome, room_id, agent_id, actor, error_code }: audit.AuditRecord): string {
  const about = [room_id, agent_id].filter((name) => name !== null).join("/");
  return printable(
    [seq, at, event, outcome, about, `by ${actor.name || actor.id}`, error_code ?? ""].join(" ").trimEnd(),
  );
}
