/** Owns `roomd init`: the first organization, its key and the operator key, once. */
import type { Command } from "commander";
import { command, type JsonOption } from "./command.ts";
import { type ConfigOption, withConfigOption, withOperator } from "./operator.ts";
import { fieldLines, showValue } from "./output.ts";

export function initCommand(): Command {
  const about = {
    summary: "set up the service's data, once: the first organization and its keys (run on the host)",
    notes: ["The keys are shown now and never again. Run again it refuses and changes nothing."],
    examples: ["roomd init", "roomd init --json > keys.json"],
  };
  return withConfigOption(command("init", about)).action(async (options: JsonOption & ConfigOption) => {
    const made = await withOperator(options, (operator) => operator.init());
    await showValue(made, options, fieldLines);
  });
}
