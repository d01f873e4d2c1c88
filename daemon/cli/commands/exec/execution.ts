/** `roomd execution`: running and finished commands of a sandbox. */
import type { Command } from "commander";
import {
  executionEnd,
  executionGet,
  executionList,
  executionSignal,
  SIGNALS,
} from "../../../../shared/api/executions.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { fieldLines, type JsonOption, show } from "../../kit/output.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { integer } from "../../kit/values.ts";
import { columns, verb } from "../../kit/verb.ts";
import { follow, statusOf } from "./exec.ts";
import { followOutput } from "./exec-follow.ts";

const SHOWN_CHARACTERS = 60;

interface AttachOptions {
  after?: number;
  follow: boolean;
}

export function executionCommand(setStatus: (status: number) => void): Command {
  return commandGroup("execution", {
    summary: "list, follow and end commands that run in a sandbox",
    examples: ["roomd execution list build-42 worker-1", "roomd execution attach build-42 worker-1 build-1"],
  })
    .addCommand(
      verb(executionList, "list <room> <agent>", "list commands that are running or ended in the last 10 minutes", {
        examples: ["roomd execution list build-42 worker-1"],
        lines: columns(
          ["EXEC_ID", (each) => each.exec_id],
          ["STATE", (each) => each.state],
          ["EXIT", (each) => (each.timed_out ? "timeout" : (each.signal ?? each.exit_code))],
          ["STARTED", (each) => each.started_at],
          ["COMMAND", (each) => each.argv.join(" ").slice(0, SHOWN_CHARACTERS)],
        ),
      }),
    )
    .addCommand(
      verb(executionGet, "get <room> <agent> <exec-id>", "show one", {
        examples: ["roomd execution get build-42 worker-1 build-1"],
        lines: recordLines,
      }),
    )
    .addCommand(attach(setStatus))
    .addCommand(signal())
    .addCommand(
      verb(executionEnd, "end <room> <agent> <exec-id>", "end it and everything it started", {
        examples: ["roomd execution end build-42 worker-1 build-1"],
        lines: fieldLines,
      }),
    );
}

function attach(setStatus: (status: number) => void): Command {
  return command("attach <room> <agent> <exec-id>", {
    summary: "print its output and follow it as `roomd exec` does",
    examples: [
      "roomd execution attach build-42 worker-1 build-1",
      "roomd execution attach build-42 worker-1 build-1 --no-follow",
    ],
  })
    .option("--after <seq>", "start after this piece of output", integer(0))
    .option("--no-follow", "print the output so far, then exit")
    .action(async (room_id: string, sandbox: string, exec_id: string, options: AttachOptions) => {
      const name = { room_id, sandbox, exec_id };
      const after = options.after ?? -1;
      const about = `waiting for ${exec_id}`;
      if (options.follow) return setStatus(statusOf(await follow(name, { after, about, piped: false, ending: null })));
      const ended = await followOutput(name, { after, about, follow: false });
      if (ended) setStatus(statusOf(ended));
    });
}

function signal(): Command {
  return command("signal <room> <agent> <exec-id> <signal>", {
    summary: "send it a signal",
    examples: ["roomd execution signal build-42 worker-1 build-1 HUP"],
  }).action(async (room_id: string, sandbox: string, exec_id: string, name: string, options: JsonOption) => {
    const signalName = SIGNALS.find((each) => each === name.toUpperCase()) ?? name;
    const reply = await call(executionSignal, { room_id, sandbox, exec_id, signal: signalName });
    await show(reply, options, () => []);
  });
}
