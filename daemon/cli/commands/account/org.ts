/** `roomd org`: the organizations of the service. */
import type { Command } from "commander";
import { PLANS, type Plan } from "../../../../shared/api/people/plans.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { type ConfigOption, withConfigOption, withOperator } from "../../host/operator.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { choice, command, commandGroup } from "../../kit/command.ts";
import { fieldLines, type JsonOption, say, showValue, table } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { integer } from "../../kit/values.ts";
import { type OrgOption, orgOf, withOrgOption } from "./org-option.ts";
import { sshKeyCommand } from "./ssh-key.ts";

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
    .addCommand(end())
    .addCommand(credits())
    .addCommand(sshKeyCommand("org ssh-key"));
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
    .requiredOption("--name <name>", "display name")
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
        ["ORG", "NAME", "PLAN", "CREATED", "ENDING"],
        items.map((org) => [org.org_id, org.name, org.plan, org.created_at, org.ending_at]),
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

const LOOK_MS = 250;

function end(): Command {
  const about = {
    summary: "delete an organization permanently: keys and members immediately, then its rooms with their drives",
    notes: [
      "The deletion continues after a restart; the command waits until it is complete. Audit and usage records keep their usual retention.",
    ],
    examples: ["roomd org delete org_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D --name Acme"],
  };
  return withConfigOption(command("delete <org>", about))
    .requiredOption("--name <name>", "its display name, as a confirmation")
    .action(async (org: string, options: JsonOption & ConfigOption & { name: string }) => {
      const ended = await withProgress(`ending ${options.name}`, (progress) =>
        withOperator(options, async (operator) => {
          const started = await operator.endOrg(org as OrgId, options.name);
          while (operator.isServed() && !operator.hasOrgEnded(started.org_id)) {
            const left = operator.countRoomsOf(started.org_id);
            progress.say(`ending ${options.name}: ${left} ${left === 1 ? "room" : "rooms"} left`);
            await Bun.sleep(LOOK_MS);
          }
          return { ...started, state: operator.hasOrgEnded(started.org_id) ? "ended" : "ending" };
        }),
      );
      await showValue(ended, options, fieldLines);
      if (ended.state === "ending" && !options.json)
        await say("The service is not running: the deletion continues once it is started.");
    });
}

interface CreditOptions extends JsonOption, ConfigOption, OrgOption {
  grant?: number;
  withdraw?: boolean;
  reason?: string;
  once?: string;
}

const MAX_REASON_CHARACTERS = 200;

function credits(): Command {
  const about = {
    summary: "show an organization's credits, or grant it more, in addition to its plan's",
    notes: [
      "Without --grant and --withdraw it lists granted and spent credits.",
      "An organization without any credits granted has no limit. The configuration has the prices: billing.sandbox_hour and others.",
    ],
    examples: [
      "roomd org credits",
      'roomd org credits --grant 500 --reason "for the workshop"',
      "roomd org credits org_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D --withdraw",
    ],
  };
  return withConfigOption(withOrgOption(command("credits [org]", about)))
    .option("--grant <credits>", "credits to add", integer(1))
    .option("--withdraw", "take back all credits granted in addition to the plan's")
    .option("--reason <text>", "why, as the organization reads it")
    .option("--once <name>", "idempotency name of this grant: repetitions with the same name change nothing")
    .action(async (named: string | undefined, { grant, withdraw, reason, once, ...given }: CreditOptions) => {
      const options = named === undefined ? given : { ...given, org: named };
      if (grant !== undefined && withdraw) throw new CliError("Give --grant or --withdraw.", EXIT.usage);
      if ((reason?.length ?? 0) > MAX_REASON_CHARACTERS || (once?.length ?? 0) > MAX_REASON_CHARACTERS) {
        throw new CliError(`--reason and --once have ${MAX_REASON_CHARACTERS} characters at most.`, EXIT.usage);
      }
      if (grant === undefined && !withdraw) {
        const items = await withOperator(options, async (operator) =>
          operator.listCredits(await orgOf(operator, options)),
        );
        await showValue({ items }, options, () =>
          table(
            ["WHEN", "WHAT", "CREDITS", "REASON"],
            items.map(({ at, kind, amount, reason: why }) => [at, kind, amount, why]),
          ),
        );
        return;
      }
      const why = {
        reason: reason?.trim() || "by the operator",
        effect: once === undefined ? crypto.randomUUID() : `operator:${once}`,
      };
      const { is_new, ...balance } = await withOperator(options, async (operator) =>
        operator.grantCredits(await orgOf(operator, options), grant ?? null, why),
      );
      if (!is_new) await say(`Nothing was changed: ${once} was done before.`);
      await showValue(balance, options, fieldLines);
    });
}
