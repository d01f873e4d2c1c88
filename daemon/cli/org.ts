/** Owns `roomd org`: the organizations of the service. */
import type { Command } from "commander";
import { PLANS, type Plan } from "../../shared/api/plans.ts";
import { CliError, EXIT } from "./cli-error.ts";
import { choice, command, commandGroup } from "./command.ts";
import { type ConfigOption, withConfigOption, withOperator } from "./operator.ts";
import { type OrgOption, orgOf, withOrgOption } from "./org-option.ts";
import { fieldLines, type JsonOption, showValue, table } from "./output.ts";
import { sshKeyCommand } from "./ssh-key.ts";
import { integer } from "./values.ts";

export function orgCommand(): Command {
  return commandGroup("org", {
    summary: "organizations (run on the host)",
    examples: [
      "roomd org create --name Acme",
      "roomd org list",
      "roomd org set-plan --plan starter",
      "roomd org credits --grant 500",
    ],
  })
    .addCommand(create())
    .addCommand(list())
    .addCommand(setPlan())
    .addCommand(credits())
    .addCommand(sshKeyCommand());
}

interface CreateOptions extends JsonOption, ConfigOption {
  name: string;
  plan?: Plan;
}

function create(): Command {
  const about = {
    summary: "create an organization; its first API key is printed now and never again",
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

interface SetPlanOptions extends JsonOption, ConfigOption, OrgOption {
  plan: Plan;
}

function setPlan(): Command {
  const about = {
    summary: "put an organization on another plan",
    notes: [
      "Whatever exceeds the new plan's caps keeps running. Nothing more can be created until usage is below them.",
    ],
    examples: ["roomd org set-plan --org org_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D --plan starter"],
  };
  return withConfigOption(withOrgOption(command("set-plan", about)))
    .addOption(choice("--plan <plan>", "its new plan", PLANS).makeOptionMandatory())
    .action(async (options: SetPlanOptions) => {
      const changed = await withOperator(options, async (operator) =>
        operator.setPlan(await orgOf(operator, options), options.plan),
      );
      await showValue(changed, options, fieldLines);
    });
}

interface CreditOptions extends JsonOption, ConfigOption, OrgOption {
  grant?: number;
  withdraw?: boolean;
}

function credits(): Command {
  const about = {
    summary: "grant an organization credits, in addition to its plan's",
    notes: [
      "An organization without any credits granted has no limit. The configuration has the prices: billing.sandbox_hour and others.",
    ],
    examples: ["roomd org credits --grant 500", "roomd org credits --org org_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D --withdraw"],
  };
  return withConfigOption(withOrgOption(command("credits", about)))
    .option("--grant <credits>", "credits to add", integer(1))
    .option("--withdraw", "take back all credits granted in addition to the plan's")
    .action(async ({ grant, withdraw, ...options }: CreditOptions) => {
      if ((grant === undefined) === (withdraw !== true)) throw new CliError("Give --grant or --withdraw.", EXIT.usage);
      const balance = await withOperator(options, async (operator) =>
        operator.grantCredits(await orgOf(operator, options), grant ?? null),
      );
      await showValue(balance, options, fieldLines);
    });
}
