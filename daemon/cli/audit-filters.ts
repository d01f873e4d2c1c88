/** Owns what the commands on the audit have in common: whose it is, and which of its records. */
import type { Command } from "commander";
import { OUTCOMES } from "../../shared/api/audit.ts";
import { CliError, EXIT } from "./cli-error.ts";
import { choice } from "./command.ts";

export interface WhoseOptions {
  org?: boolean;
}

export interface FilterOptions extends WhoseOptions {
  since?: string;
  until?: string;
  event?: string;
  agent?: string;
  outcome?: (typeof OUTCOMES)[number];
}

export function withWhose(command: Command): Command {
  return command.option("--org", "the whole organization of the key instead of one room");
}

export function withFilters(command: Command): Command {
  return withWhose(command)
    .option("--since <time>", "RFC 3339 or unix seconds")
    .option("--until <time>", "RFC 3339 or unix seconds")
    .option("--event <beginning>", "only events whose name begins so, such as sandbox.")
    .option("--agent <agent>", "only this agent")
    .addOption(choice("--outcome <outcome>", "only with this outcome", OUTCOMES));
}

/** The room, or undefined for the organization, and the query as the service takes it. Throws CliError. */
export function asked<T extends FilterOptions>(room: string | undefined, { org, agent, ...query }: T) {
  if (room === undefined && org !== true) throw new CliError("Name a room, or give --org.", EXIT.usage);
  if (room !== undefined && org === true) {
    throw new CliError("Name a room or give --org, not both: --org is the organization of the key.", EXIT.usage);
  }
  return { room_id: room, query: { agent_id: agent, ...query } };
}
