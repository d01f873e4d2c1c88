/** `roomd init`: the first organization, its key and the operator key, once. */
import type { Command } from "commander";
import { PLANS, type Plan } from "../../../shared/api/people/plans.ts";
import { webUrl } from "../commands/account/user.ts";
import { choice, command } from "../kit/command.ts";
import { fieldLines, type JsonOption, say, showValue } from "../kit/output.ts";
import { type ConfigOption, readConfiguration, withConfigOption, withOperator } from "./operator.ts";

interface InitOptions extends JsonOption, ConfigOption {
  plan?: Plan;
}

export function initCommand(): Command {
  const about = {
    summary: "set up the service: the first organization and its keys; once (run on the host)",
    notes: [
      "The keys are shown now and never again. A second run is refused and changes nothing.",
      "The setup link signs the first owner in, once, within 24 hours. `roomd user link` prints a new one.",
    ],
    examples: ["roomd init", "roomd init --plan starter", "roomd init --json > keys.json"],
  };
  return withConfigOption(command("init", about))
    .addOption(choice("--plan <plan>", "the organization's plan (default: free)", PLANS))
    .action(async (options: InitOptions) => {
      const { plan = "free" } = options;
      const { config } = readConfiguration(options);
      // Configuration errors are reported before anything is made.
      const web = webUrl(config);
      const made = await withOperator(options, async (operator) => {
        const keys = await operator.init(plan);
        if (!config["web.enabled"]) return keys;
        // The keys are shown even if creating the link fails: `roomd user link` creates another.
        const link = await operator.setupLink().catch(() => null);
        return { ...keys, setup: link && web + link.path };
      });
      await showValue(made, options, fieldLines);
      if (!options.json) await say(...planLines(plan, options));
    });
}

/** The limits of the plan, and how to change them. */
function planLines(plan: Plan, options: ConfigOption): string[] {
  const { config } = readConfiguration(options);
  const most = (quantity: "rooms" | "sandboxes" | "memory_mib" | "drive_gib") =>
    config[`plans.${plan}.${quantity}_hard_cap`];
  const memory = Math.floor(most("memory_mib") / 1024);
  return [
    `The organization is on the plan ${plan}: at most ${most("rooms")} rooms, ${most("sandboxes")} sandboxes with ${memory} GiB of memory, and ${most("drive_gib")} GiB on drives.`,
    "Change the plan: `roomd org set-plan`. Limits of plans: `plans.*` in the configuration.",
  ];
}
