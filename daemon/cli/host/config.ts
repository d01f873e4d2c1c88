/** `roomd config`: the configuration in force and the source of each value. */
import type { Command } from "commander";
import { CONFIG_KEYS, type ConfigKey, exampleConfig, loadConfig, variableOf } from "../../core/config/config.ts";
import { command } from "../kit/command.ts";
import { type JsonOption, print, showValue, table } from "../kit/output.ts";
import { type ConfigOption, withConfigOption } from "./operator.ts";

interface ConfigCommandOptions extends JsonOption, ConfigOption {
  example?: boolean;
}

export function configCommand(): Command {
  const about = {
    summary: "print the configuration in force",
    notes: [
      `Each key can be set by a variable: http.listen by ${variableOf("http.listen")}. Times are in seconds here.`,
    ],
    examples: ["roomd config", "roomd config --config /srv/second.toml --json", "roomd config --example > config.toml"],
  };
  return withConfigOption(command("config", about))
    .option("--example", "print a file with every key, its meaning and its default")
    .action(async (options: ConfigCommandOptions) => {
      if (options.example) return print(exampleConfig());
      const { config, origins, file } = loadConfig({ file: options.config });
      await showValue({ file, config, origins }, options, () =>
        table(
          ["KEY", "VALUE", "FROM"],
          (Object.keys(CONFIG_KEYS) as ConfigKey[]).map((key) => [key, String(config[key]), origins[key]]),
        ),
      );
    });
}
