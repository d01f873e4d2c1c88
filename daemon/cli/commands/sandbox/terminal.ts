/** `roomd terminal`: the terminals of a sandbox; `roomd shell` opens and re-attaches them. */

import type { Command } from "commander";
import {
  terminalClose,
  terminalCreate,
  terminalGet,
  terminalList,
  terminalToken,
} from "../../../../shared/api/terminals.ts";
import { pathOf } from "../../../../shared/places.ts";
import { CliError } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { findConnection } from "../../kit/connection.ts";
import { fieldLines, type JsonOption, showValue } from "../../kit/output.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { columns, verb } from "../../kit/verb.ts";
import { watchTerminal } from "./terminal-watch.ts";

const EXAMPLE = "build-42 worker-1 ter_01JZ8Q4W5T6Y7V8X9ZABCDEFGH";

export function terminalCommand(): Command {
  return commandGroup("terminal", {
    summary: "terminals of a sandbox, as `roomd shell` opens them",
    examples: ["roomd terminal list build-42 worker-1", "roomd terminal watch build-42 worker-1"],
  })
    .addCommand(
      verb(terminalList, "list <room> <agent>", "list terminals that are running or ended in the last 10 minutes", {
        examples: ["roomd terminal list build-42 worker-1"],
        lines: columns(
          ["TERMINAL", (each) => each.terminal_id],
          ["STATE", (each) => each.state],
          ["ATTACHED", (each) => (each.attached ? "yes" : "no")],
          ["USER", (each) => each.user],
          ["SIZE", (each) => `${each.cols}x${each.rows}`],
          ["CREATED", (each) => each.created_at],
          ["COMMAND", (each) => each.command],
        ),
      }),
    )
    .addCommand(
      verb(terminalGet, "get <room> <agent> <terminal>", "print a terminal's record", {
        examples: [`roomd terminal get ${EXAMPLE}`],
        lines: recordLines,
      }),
    )
    .addCommand(watch())
    .addCommand(
      verb(terminalClose, "close <room> <agent> <terminal>", "close a terminal and end everything started in it", {
        examples: [`roomd terminal close ${EXAMPLE}`],
        lines: ({ state }, { terminal_id }) => [`terminal ${terminal_id} is ${state}`],
      }),
    )
    .addCommand(token());
}

function token(): Command {
  return command("token <room> <agent> [terminal]", {
    summary: "make a short-lived token with which to type at a terminal in a browser",
    notes: [
      "The token opens this terminal and nothing else. Without TERMINAL it is the newest running terminal; if none is running, a",
      "login shell is opened.",
    ],
    examples: ["roomd terminal token build-42 worker-1", `roomd terminal token ${EXAMPLE}`],
  }).action(async (room_id: string, sandbox: string, given: string | undefined, options: JsonOption) => {
    const terminal_id = given ?? (await newestRunning(room_id, sandbox));
    const { value } =
      terminal_id === null
        ? await call(terminalCreate, { room_id, sandbox, rows: 24, cols: 80 })
        : await call(terminalToken, { room_id, sandbox, terminal_id });
    const { url } = await findConnection();
    const page = url + pathOf({ type: "terminal", id: value.terminal_id, room_id, agent_id: sandbox });
    await showValue({ ...value, page }, options, fieldLines);
  });
}

function watch(): Command {
  return command("watch <room> <agent> [terminal]", {
    summary: "watch a terminal without typing",
    notes: [
      "Without TERMINAL it is the newest running terminal. Its typing client is not disturbed. It lasts until the terminal ends, or",
      "until ctrl-c. Sequences that do more than draw are filtered out: clipboard, titles, links, and queries to your terminal.",
      "With --json every event is a line.",
    ],
    examples: ["roomd terminal watch build-42 worker-1", `roomd terminal watch ${EXAMPLE}`],
  }).action(async (room_id: string, sandbox: string, given: string | undefined, { json = false }: JsonOption) => {
    const terminal_id = given ?? (await newestRunning(room_id, sandbox));
    if (terminal_id === null) {
      const hint = `\`roomd shell ${room_id} ${sandbox}\` opens one.`;
      throw new CliError({ detail: `No terminal of ${sandbox} is running.`, errors: [], hint });
    }
    await watchTerminal({ room_id, sandbox, terminal_id }, json);
  });
}

async function newestRunning(room_id: string, sandbox: string): Promise<string | null> {
  const { items } = (await call(terminalList, { room_id, sandbox })).value;
  const running = items.filter(({ state }) => state === "running");
  const newest = running.sort((one, other) => one.created_at.localeCompare(other.created_at)).at(-1);
  return newest?.terminal_id ?? null;
}
