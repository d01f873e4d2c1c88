/** The organization of an operator's command: the one in its option, or the only organization. */
import type { Command } from "commander";
import type { OrgId } from "../../../../shared/ids.ts";
import type { Operator } from "../../host/operator.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";

export interface OrgOption {
  org?: string;
}

export function withOrgOption(command: Command): Command {
  return command.option("--org <org>", "the organization (default: the only one there is)");
}

export async function orgOf(operator: Operator, { org }: OrgOption): Promise<OrgId> {
  if (org !== undefined) return org as OrgId; // an unknown one is refused on use
  const [only, ...others] = await operator.listOrgs();
  if (!only) throw new CliError("There is no organization yet: `roomd init` makes the first one.");
  if (others.length === 0) return only.org_id;
  throw new CliError("There are several organizations: name one with --org; `roomd org list` shows them.", EXIT.usage);
}
