/** `roomd timeline`: past and current events of a room, one per line. */
import type { Command } from "commander";
import { roomTimeline } from "../../../../shared/api/overview/overview.ts";
import { TIMELINE_TYPES, type TimelineItem } from "../../../../shared/timeline/item.ts";
import { toItem } from "../../../../shared/timeline/to-item.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { choice, command } from "../../kit/command.ts";
import { asList, type ListOptions } from "../../kit/list-options.ts";
import { type JsonOption, moreLines, print, printable, show, table } from "../../kit/output.ts";
import { moment, words } from "../../kit/values.ts";
import { followRecords } from "../audit/audit-stream.ts";

interface TimelineOptions extends ListOptions {
  since?: string;
  until?: string;
  agent?: string;
  type?: string;
  order?: "asc" | "desc";
  follow?: boolean;
}

export function timelineCommand(): Command {
  const about = {
    summary: "print what happened in a room: commands, waits, messages, refusals",
    examples: [
      "roomd timeline build-42",
      "roomd timeline build-42 --agent worker-1 --type command,wait --limit 50",
      "roomd timeline build-42 --since 2026-01-31T12:00:00Z --order asc",
      "roomd timeline build-42 --follow",
    ],
    notes: [`Types: ${TIMELINE_TYPES.join(", ")}.`],
  };
  return asList(command("timeline <room>", about))
    .option("--since <time>", "RFC 3339 or unix seconds", moment)
    .option("--until <time>", "RFC 3339 or unix seconds", moment)
    .option("--agent <agent>", "only this agent")
    .option("--type <types>", "only these types, separated by commas", words(TIMELINE_TYPES))
    .addOption(choice("--order <order>", "newest (desc) or oldest (asc) first (default: desc)", ["desc", "asc"]))
    .option("--follow", "then print new entries, until ctrl-c or until the room is destroyed")
    .action(async (room_id: string, { json, follow, agent, type, ...query }: TimelineOptions) => {
      const timelineQuery = { room_id, agent_id: agent, types: type, ...query };
      if (follow) return await followed(timelineQuery, { json });
      await show(await call(roomTimeline, timelineQuery), { json }, ({ items, open, next_cursor }) => [
        ...table(
          ["AT", "UNTIL", "AGENT", "TYPE", "OUTCOME", "WHAT"],
          [...open, ...items].map((item) => [
            item.at,
            endOf(item),
            nameOf(item),
            item.type,
            item.outcome,
            whatOf(item),
          ]),
        ),
        ...moreLines(next_cursor),
      ]);
    });
}

interface TimelineQuery extends Omit<TimelineOptions, "agent" | "type" | "follow" | "json"> {
  room_id: string;
  agent_id: string | undefined;
  types: string | undefined;
}

/** Prints the newest page in ascending order, then each new item as it arrives. */
async function followed(query: TimelineQuery, { json }: JsonOption): Promise<void> {
  if (query.until !== undefined || query.cursor !== undefined || query.order === "asc") {
    throw new CliError("--follow starts with the newest entries: omit --until, --cursor and --order.", EXIT.usage);
  }
  const tell = async (item: TimelineItem) => await print(json ? JSON.stringify(item) : lineOf(item));
  const room_id = query.room_id;
  const types = query.types?.split(",");
  // Events that arrive while the page is read arrive twice, and are recognized by their seq.
  const { items: newest } = (await call(roomTimeline, { room_id, limit: 1 })).value;
  const { items } = (await call(roomTimeline, query)).value;
  for (const item of items.toReversed()) await tell(item);
  const known = items[0]?.seq ?? 0;
  const after = String(newest[0]?.seq ?? 0);
  for await (const record of followRecords({ room_id, after, follow: true })) {
    const item = record.seq > known ? toItem(record) : null;
    if (
      !item ||
      (query.agent_id !== undefined && item.agent_id !== query.agent_id) ||
      types?.includes(item.type) === false
    )
      continue;
    await tell(item);
  }
}

const endOf = ({ kind, until }: TimelineItem): string => (kind === "mark" ? "" : (until ?? "now"));
const nameOf = ({ agent_id, lane }: TimelineItem): string => agent_id ?? lane;

function whatOf({ title, exit_code, to }: TimelineItem): string {
  const exited = exit_code === null || exit_code === 0 ? "" : ` (exit ${exit_code})`;
  const recipients = to.length > 1 ? ` (to ${to.join(", ")})` : "";
  return `${title}${recipients}${exited}`;
}

function lineOf(item: TimelineItem): string {
  const until = item.until === null ? "" : `until ${item.until}`;
  return printable([item.at, nameOf(item), item.type, item.outcome, whatOf(item), until].join(" ").trimEnd());
}
