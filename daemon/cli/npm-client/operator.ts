/** Replaces ../host/operator.ts in the npm client, which cannot open a service's data. */
import type { Command } from "commander";
import type { ConfigOption, Operator } from "../host/operator.ts";
import { CliError, EXIT } from "../kit/cli-error.ts";

export type { ConfigOption, Operator } from "../host/operator.ts";

export const IS_HOST = false;

export const withConfigOption = (command: Command): Command => command;

export function withOperator<T>(_options: ConfigOption, _work: (operator: Operator) => T | Promise<T>): Promise<T> {
  return Promise.reject(onHostOnly());
}

export function readConfiguration(_options: ConfigOption): never {
  throw onHostOnly();
}

export function ownConfiguration(_options: ConfigOption): never {
  throw onHostOnly();
}

function onHostOnly(): CliError {
  return new CliError(
    "This works on the service's host alone: run it there with the roomd of its package.",
    EXIT.usage,
  );
}
