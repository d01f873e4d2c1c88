/** Owns `roomd terminal`: the terminals of a sandbox; `roomd shell` opens them and goes back to them. */
import type { Command } from "commander";
import { terminalClose, terminalGet, terminalList, terminalToken } from "../../shared/api/terminals.ts";
import { call } from "./client.ts";
import { command, commandGroup } from "./command.ts";
import { fieldLines, type JsonOption, show, table } from "./output.ts";

const EXAMPLE = "build-42 worker-1 ter_01JZ8Q4W5T6Y7V8X9ZABCDEFGH";

export function terminalCommand(): Command {
  return commandGroup("terminal", {
    summary: "terminals of a sandbox, as `roomd shell` opens them",
    examples: ["roomd terminal list build-42 worker-1", `roomd terminal close ${EXAMPLE}`],
  })
    .addCommand(list())
    .addCommand(get())
    .addCommand(close())
    .addCommand(token());
}

function list(): Command {
  return command("list <room> <agent>", {
    summary: "list running terminals, and those that ended in the last 10 minutes",
    examples: ["roomd terminal list build-42 worker-1"],
  }).action(async (room_id: string, sandbox: string, options: JsonOption) => {
    await show(await call(terminalList, { room_id, sandbox }), options, ({ items }) =>
      table(
        ["TERMINAL", "STATE", "ATTACHED", "USER", "SIZE", "CREATED", "COMMAND"],
        items.map((each) => [
          each.terminal_id,
          each.state,
          each.attached ? "yes" : "no",
          each.user,
          `${each.cols}x${each.rows}`,
          each.created_at,
          each.command,
        ]),
      ),
    );
  });
}

function get(): Command {
  return command("get <room> <agent> <terminal>", {
    summary: "print a terminal's record",
    examples: [`roomd terminal get ${EXAMPLE}`],
  }).action(async (room_id: string, sandbox: string, terminal_id: string, options: JsonOption) => {
    await show(await call(terminalGet, { room_id, sandbox, terminal_id }), options, fieldLines);
  });
}

function close(): Command {
  return command("close <room> <agent> <terminal>", {
    summary: "close a terminal and end everything started in it",
    examples: [`roomd terminal close ${EXAMPLE}`],
  }).action(async (room_id: string, sandbox: string, terminal_id: string, options: JsonOption) => {
    const reply = await call(terminalClose, { room_id, sandbox, terminal_id });
    await show(reply, options, ({ state }) => [`terminal ${terminal_id} is ${state}`]);
  });
}

function token(): Command {
  return command("token <room> <agent> <terminal>", {
    summary: "make a short-lived token that opens this terminal in a browser, and nothing else",
    examples: [`roomd terminal token ${EXAMPLE}`],
  }).action(async (room_id: string, sandbox: string, terminal_id: string, options: JsonOption) => {
    await show(await call(terminalToken, { room_id, sandbox, terminal_id }), options, fieldLines);
  });
}
