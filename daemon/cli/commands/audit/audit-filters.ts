/** Options shared by the audit commands: room or organization, and the record filters. */
import type { Command } from "commander";
import { OUTCOMES, SOURCES } from "../../../../shared/api/audit.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { choice } from "../../kit/command.ts";
import { moment } from "../../kit/values.ts";

export interface WhoseOptions {
  org?: boolean;
}

export interface FilterOptions extends WhoseOptions {
  since?: string;
  until?: string;
  event?: string;
  agent?: string;
  room?: string;
  outcome?: (typeof OUTCOMES)[number];
  source?: (typeof SOURCES)[number];
  actor?: string;
  request?: string;
  trace?: string;
  record?: string;
  reads?: boolean;
}

export function withWhose(command: Command): Command {
  return command.option("--org", "the whole organization of the key instead of one room");
}

export function withFilters(command: Command): Command {
  return withWhose(command)
    .option("--since <time>", "RFC 3339 or unix seconds", moment)
    .option("--until <time>", "RFC 3339 or unix seconds", moment)
    .option("--event <beginning>", "only events with this name prefix, such as sandbox.")
    .option("--room <room>", "with --org: only rooms of this name, destroyed ones too")
    .option("--agent <agent>", "only this agent")
    .addOption(choice("--outcome <outcome>", "only with this outcome", OUTCOMES))
    .addOption(choice("--source <source>", "only calls through this transport", SOURCES))
    .option("--actor <id>", "only actions of this key, person or sandbox")
    .option("--request <id>", "only records of this request")
    .option("--trace <id>", "only records of this trace")
    .option("--record <id>", "only this record")
    .option("--no-reads", "without calls that only read, unless they were refused or failed");
}

/** The room (undefined: the organization), and the filters as query parameters of the API. Throws CliError. */
export function asked<T extends FilterOptions>(
  room: string | undefined,
  { org, agent, actor, request, trace, record, reads, room: named, ...query }: T,
) {
  if (room === undefined && org !== true && named === undefined)
    throw new CliError("Name a room, or give --org.", EXIT.usage);
  if (room !== undefined && org === true) {
    throw new CliError("Name a room or give --org, not both: --org is the organization of the key.", EXIT.usage);
  }
  if (room !== undefined && named !== undefined) {
    throw new CliError("Name the room once: --room filters the records of the whole organization.", EXIT.usage);
  }
  const ids = { agent_id: agent, actor_id: actor, request_id: request, trace_id: trace, audit_id: record };
  const ofRoom = { ...ids, ...(reads === false ? { reads } : {}), ...query };
  return { room_id: room, ofRoom, ofOrg: { ...ofRoom, room_id: named } };
}
