/**
 * `roomd hibernate`: saves the sandboxes before a shutdown of the host, if no systemd notifies the service, or if the operator wants to see
 * the result first. A file signals the service, which then ends as at a shutdown; the next one resumes the saved sandboxes.
 */
import { writeFileSync } from "node:fs";
import type { Command } from "commander";
import { CliError, EXIT } from "../kit/cli-error.ts";
import { command } from "../kit/command.ts";
import { counted, type JsonOption, showValue } from "../kit/output.ts";
import { withProgress } from "../kit/progress.ts";
import { endDaemon } from "./end-daemon.ts";
import { type ConfigOption, ownConfiguration, withConfigOption, withOperator } from "./operator.ts";

/** Exceeds the longest time in which the service saves all sandboxes. */
const DEADLINE_MS = 25 * 60_000;

export function hibernateCommand(setStatus: (status: number) => void): Command {
  const about = {
    summary: "save every sandbox to disk and end the service, before the host is shut down (run on the host)",
    notes: [
      "Under systemd a shutdown of the host does the same automatically (hibernate.on_shutdown).",
      "On its next start the service resumes all sandboxes except those in standby. `roomd doctor` lists in advance the sandboxes that",
      "cannot be saved. They run until the host is off, and the exit status is 1.",
    ],
    examples: ["roomd hibernate --all"],
  };
  return withConfigOption(command("hibernate", about))
    .requiredOption("--all", "every sandbox of this host; for a single one use `roomd sandbox hibernate`")
    .action(async (options: JsonOption & ConfigOption) => {
      const { paths } = ownConfiguration(options);
      const tell = () => writeFileSync(paths.hibernate_all, "", { mode: 0o600 });
      const ended = await withProgress("saving sandboxes", () => endDaemon(paths, DEADLINE_MS, tell));
      if (!ended) {
        throw new CliError({
          detail: `No service runs with ${paths.runtime}.`,
          errors: [],
          hint: "Start it: only the service can save running sandboxes.",
        });
      }
      const report = await withOperator(options, (operator) => operator.hibernated());
      await showValue(report, options, ({ hibernated, left_out }) => [
        `${counted(hibernated, "sandbox is", "sandboxes are")} on disk, and the service has ended: it resumes them when it starts`,
        ...left_out.map(({ room_id, agent_id, why }) => `not saved: ${room_id}/${agent_id}: ${why}`),
      ]);
      setStatus(report.left_out.length === 0 ? EXIT.ok : EXIT.refused);
    });
}
