/** Owns `roomd health`, `roomd limits` and `roomd whoami`: what a client can know of the service, and of its own key. */
import type { Command } from "commander";
import { configGet, health, meGet } from "../../shared/api/service.ts";
import { call } from "./client.ts";
import { command, type JsonOption } from "./command.ts";
import { fieldLines, show } from "./output.ts";

export function healthCommand(): Command {
  return command("health", {
    summary: "how the service is; needs no key, and says more with one",
    examples: ["roomd health", "roomd health --json"],
  }).action(async (options: JsonOption) => {
    await show(await call(health, {}), options, ({ checks, ...rest }) => [
      ...fieldLines(rest),
      ...checks.flatMap((check) => fieldLines({ [check.id]: check.message ?? check.status })),
    ]);
  });
}

export function limitsCommand(): Command {
  return command("limits", {
    summary: "the limits that are in force, and what the service guarantees",
    examples: ["roomd limits", "roomd limits --json"],
  }).action(async (options: JsonOption) => {
    await show(await call(configGet, {}), options, fieldLines);
  });
}

export function whoamiCommand(): Command {
  return command("whoami", {
    summary: "whose key this is, and what it may do",
    examples: ["roomd whoami", "roomd whoami --json"],
  }).action(async (options: JsonOption) => {
    await show(await call(meGet, {}), options, fieldLines);
  });
}
