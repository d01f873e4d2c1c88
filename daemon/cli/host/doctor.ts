/** `roomd doctor`: checks whether this host can run sandboxes, with a remedy for each failed check. */
import type { Command } from "commander";
import type { HealthCheck } from "../../../shared/api/service.ts";
import { EXIT } from "../kit/cli-error.ts";
import { command } from "../kit/command.ts";
import { type JsonOption, paint, showValue } from "../kit/output.ts";
import { withProgress } from "../kit/progress.ts";
import { type ConfigOption, withConfigOption, withOperator } from "./operator.ts";

const STYLES = { ok: "green", warn: "yellow", fail: "red" } as const;

export function doctorCommand(setStatus: (status: number) => void): Command {
  const about = {
    summary: "check this host's requirements for sandboxes, and print remedies",
    notes: ["Exit status 1 when a check fails; warnings do not count."],
    examples: ["roomd doctor", "roomd doctor --json"],
  };
  return withConfigOption(command("doctor", about)).action(async (options: JsonOption & ConfigOption) => {
    const checks = await withProgress("checking this host", () =>
      withOperator(options, (operator) => operator.doctor()),
    );
    await showValue({ checks }, options, () => checkLines(checks));
    setStatus(checks.some(({ status }) => status === "fail") ? EXIT.refused : EXIT.ok);
  });
}

/** One line per check, and its remedy. */
export function checkLines(checks: readonly HealthCheck[]): string[] {
  return checks.flatMap(({ id, status, message, remedy }) => [
    `${paint(STYLES[status], status.padEnd(4))}  ${id.padEnd(16)}  ${message ?? ""}`.trimEnd(),
    ...(remedy ? [`${" ".repeat(24)}${remedy}`] : []),
  ]);
}
