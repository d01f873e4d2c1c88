/** `roomd audit export` and `roomd audit follow`: one record per line, all stored records or new ones as they arrive. */
import type { Command } from "commander";
import * as audit from "../../../../shared/api/audit.ts";
import { plainJson } from "../../../core/text.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { download, events } from "../../kit/client.ts";
import { choice, command } from "../../kit/command.ts";
import { type JsonOption, print, printable, write } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { asked, type FilterOptions, type WhoseOptions, withFilters, withWhose } from "./audit-filters.ts";

const LINES = { headers: { Accept: "application/x-ndjson" } };

export function auditExportCommand(): Command {
  const about = {
    summary: "print every matching record as a line of JSON",
    examples: ["roomd audit export --org > audit.ndjson", "roomd audit export build-42 --event exec. | jq .details"],
  };
  return withFilters(command("export [room]", about))
    .addOption(choice("--order <order>", "oldest (asc) or newest (desc) first (default: asc)", ["asc", "desc"]))
    .action(async (room: string | undefined, options: FilterOptions & JsonOption & { order?: "asc" | "desc" }) => {
      const { json: _, order = "asc", ...filters } = options;
      const { room_id, ofRoom, ofOrg } = asked(room, filters);
      await withProgress("reading the audit", async (progress) => {
        const { stream } =
          room_id === undefined
            ? await download(audit.orgAuditList, { org_id: "self", order, ...ofOrg }, LINES)
            : await download(audit.auditList, { room_id, order, ...ofRoom }, LINES);
        const { isTTY } = process.stdout;
        const text = new TextDecoder();
        for await (const part of stream) {
          if (isTTY) progress.giveWay(false);
          await write(process.stdout, isTTY ? Buffer.from(plainJson(text.decode(part, { stream: true }))) : part);
        }
      });
    });
}

export function auditFollowCommand(): Command {
  const about = {
    summary: "print records as they arrive, until ctrl-c or until the room is destroyed",
    examples: [
      "roomd audit follow build-42",
      "roomd audit follow --org --json",
      "roomd audit follow build-42 --after 0 --no-follow",
    ],
    notes: ["With --org and --json each record has its `cursor`."],
  };
  return withWhose(command("follow [room]", about))
    .option(
      "--after <place>",
      "start after this record: its seq, with --org its cursor; 0: all (default: new records only)",
    )
    .option("--no-follow", "print the records that exist already, then exit")
    .action(async (room: string | undefined, { json, after, follow, ...filter }: FollowOptions) => {
      const { room_id } = asked(room, filter);
      if (room_id !== undefined) requireSeq(after);
      for await (const event of followRecords({ room_id, after, follow })) {
        await print(json ? plainJson(JSON.stringify(event)) : line(event));
      }
    });
}

/** Records of a room or of the organization as they arrive; resumes after the last record if the service was unavailable. */
export function followRecords({ room_id, after, follow }: Followed): AsyncGenerator<audit.AuditRecord> {
  const once = follow ? {} : { follow };
  const records =
    room_id === undefined
      ? events(audit.orgEvents, { org_id: "self", after, ...once })
      : events(audit.roomEvents, { room_id, after: after === undefined ? after : Number(after), ...once });
  return records as AsyncGenerator<audit.AuditRecord>;
}

/** Room, last record already read, and whether to wait for new records. */
interface Followed {
  room_id: string | undefined;
  after: string | undefined;
  follow: boolean;
}

interface FollowOptions extends JsonOption, WhoseOptions {
  after?: string;
  follow: boolean;
}

/** Throws CliError. */
function requireSeq(after: string | undefined): void {
  if (after === undefined || /^\d{1,15}$/.test(after)) return;
  throw new CliError("A record of a room is named by its seq, a whole number: --after 41.", EXIT.usage);
}

function line({ seq, at, event, outcome, room_id, agent_id, actor, error_code }: audit.AuditRecord): string {
  const about = [room_id, agent_id].filter((name) => name !== null).join("/");
  return printable(
    [seq, at, event, outcome, about, `by ${actor.name || actor.id}`, error_code ?? ""].join(" ").trimEnd(),
  );
}
