/** `roomd health`, `roomd limits` and `roomd whoami`: a client's view of the service, and of its own key. */

import type { Command } from "commander";
import { configGet, health, meGet } from "../../../shared/api/service.ts";
import { checkLines } from "../host/doctor.ts";
import { EXIT } from "../kit/cli-error.ts";
import { call } from "../kit/client.ts";
import { command } from "../kit/command.ts";
import { type JsonOption, paint, show } from "../kit/output.ts";
import { recordLines, terminalWidth, wrapped } from "../kit/record-lines.ts";
import { verb } from "../kit/verb.ts";

export function healthCommand(setStatus: (status: number) => void): Command {
  return command("health", {
    summary: "readiness of the service; with a key, each check with its remedy",
    notes: ["Needs no key. Exit status 1 when the service is not ready."],
    examples: ["roomd health", "roomd health --json"],
  }).action(async (options: JsonOption) => {
    const reply = await call(health, {});
    await show(reply, options, ({ checks, ...rest }) => [...recordLines(rest), "", ...checkLines(checks)]);
    setStatus(reply.value.ready ? EXIT.ok : EXIT.refused);
  });
}

export const limitsCommand = (): Command =>
  verb(configGet, "limits", "the limits in force, and the service's guarantees and non-guarantees", {
    examples: ["roomd limits", "roomd limits --json"],
    lines: ({ guarantees, non_guarantees, templates, ...rest }) => [
      ...recordLines({ ...rest, templates: templates.map(({ template_id }) => template_id) }),
      ...list("Guaranteed", guarantees),
      ...list("Not guaranteed", non_guarantees),
    ],
  });

function list(heading: string, sentences: readonly string[]): string[] {
  return [
    "",
    paint("bold", heading),
    ...sentences.flatMap((sentence) =>
      wrapped(sentence, terminalWidth() - BULLET.length).map(
        (line, at) => (at > 0 ? " ".repeat(BULLET.length) : BULLET) + line,
      ),
    ),
  ];
}

const BULLET = "- ";

export const whoamiCommand = (): Command =>
  verb(meGet, "whoami", "owner and scopes of the key", {
    examples: ["roomd whoami", "roomd whoami --json"],
    lines: recordLines,
  });
