/** Access of operator commands to the service's own data: on the host, by its configuration. */
import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import type { Command } from "commander";
import type { openOperator } from "../../compose/operator.ts";
import { type Config, ConfigError, DEFAULT_CONFIG_FILE, loadConfig } from "../../core/config/config.ts";
import { makePaths, type Paths } from "../../core/config/paths.ts";
import { makeLog } from "../../core/log.ts";
import { setUidBase } from "../../host/isolation/own-users.ts";
import { CliError } from "../kit/cli-error.ts";
import { withProgress } from "../kit/progress.ts";

/** Whether commands can work on the data of a service of this host: not those of the client (npm-client/operator.ts). */
export const IS_HOST: boolean = true;

export type Operator = Awaited<ReturnType<typeof openOperator>>;

export interface ConfigOption {
  config?: string | undefined;
}

export function withConfigOption(command: Command): Command {
  return command.option("--config <file>", `configuration file (default: ${DEFAULT_CONFIG_FILE})`);
}

/** Throws ConfigError. */
export function readConfiguration(options: ConfigOption): { config: Config; paths: Paths } {
  const { config } = loadConfig({ file: options.config });
  setUidBase(config["isolation.uid_base"]);
  try {
    return { config, paths: makePaths(config) };
  } catch (error) {
    throw new ConfigError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/** The same for work on the service's data. Throws CliError if this user may not open it. */
export function ownConfiguration(options: ConfigOption): { config: Config; paths: Paths } {
  const read = readConfiguration(options);
  let there = read.paths.data;
  // It may be made yet.
  while (!existsSync(there)) there = dirname(there);
  try {
    accessSync(there, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    throw new CliError({
      detail: `The service's data in ${read.paths.data} is not this user's to open.`,
      errors: [],
      hint: "Run this on the service's host, as root.",
    });
  }
  return read;
}

/** Opens the service's data, runs `work`, and closes the data again. */
export async function withOperator<T>(options: ConfigOption, work: (operator: Operator) => T | Promise<T>): Promise<T> {
  return await withProgress("working on the service's data", async () => {
    // Loaded lazily: client commands do not need the daemon's modules.
    const { openOperator: open } = await import("../../compose/operator.ts");
    const operator = await open({ ...ownConfiguration(options), log: makeLog("warn") });
    try {
      return await work(operator);
    } finally {
      await operator.close();
    }
  });
}
