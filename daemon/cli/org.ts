/** Owns `roomd org`: the organizations of the service. */
import type { Command } from "commander";
import { PLANS, type Plan } from "../../shared/api/orgs.ts";
import { choice, command, commandGroup, type JsonOption } from "./command.ts";
import { type ConfigOption, withConfigOption, withOperator } from "./operator.ts";
import { fieldLines, showValue, table } from "./output.ts";
import { sshKeyCommand } from "./ssh-key.ts";

export function orgCommand(): Command {
  return commandGroup("org", {
    summary: "organizations (run on the host)",
    examples: ["roomd org create --name Acme", "roomd org list"],
  })
    .addCommand(create())
    .addCommand(list())
    .addCommand(sshKeyCommand());
}

interface CreateOptions extends JsonOption, ConfigOption {
  name: string;
  plan?: Plan;
}

function create(): Command {
  const about = {
    summary: "create an organization; its first API key is shown now and never again",
    examples: ["roomd org create --name Acme", "roomd org create --name Acme --plan starter --json"],
  };
  return withConfigOption(command("create", about))
    .requiredOption("--name <name>", "what people call it")
    .addOption(choice("--plan <plan>", "its plan (default: free)", PLANS))
    .action(async (options: CreateOptions) => {
      const { name, plan } = options;
      const made = await withOperator(options, async (operator) =>
        operator.createOrg({ name, ...(plan === undefined ? {} : { plan }) }),
      );
      await showValue(made, options, fieldLines);
    });
}

function list(): Command {
  const about = { summary: "list the organizations", examples: ["roomd org list", "roomd org list --json"] };
  return withConfigOption(command("list", about)).action(async (options: JsonOption & ConfigOption) => {
    const items = await withOperator(options, (operator) => operator.listOrgs());
    await showValue({ items, next_cursor: null }, options, () =>
      table(
        ["ORG", "NAME", "PLAN", "CREATED"],
        items.map((org) => [org.org_id, org.name, org.plan, org.created_at]),
      ),
    );
  });
}
