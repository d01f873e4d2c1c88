/** The common form of every command: --json, --quiet, usage errors with status 2, and a help that ends with examples. */
import { Command, Option } from "commander";
import { silence } from "./progress.ts";
import { milliseconds } from "./values.ts";

export interface CommandHelp {
  summary: string;
  examples: readonly string[];
  /** Additional information, printed before the examples. */
  notes?: readonly string[];
}

export const JSON_FLAG = "--json";
export const QUIET_FLAG = "--quiet";

/** Option for the duration of a wait: the same flag in all commands. */
export function timeout(about: string): Option {
  return new Option("--timeout <time>", about).argParser(milliseconds);
}

/** A command with an action. `usage` is its name and arguments in commander's syntax. */
export function command(usage: string, about: CommandHelp): Command {
  return commandGroup(usage, about)
    .option(JSON_FLAG, "print JSON for programs instead of text for people")
    .option(QUIET_FLAG, "do not show progress on the terminal")
    .hook("preAction", (_, action) => {
      const { quiet, json } = action.opts<{ quiet?: boolean; json?: boolean }>();
      if (quiet || json) silence();
      action.setOptionValue("quiet", undefined);
    });
}

const abouts = new WeakMap<Command, CommandHelp>();

/** The description that a command was made from. */
export function aboutOf(command: Command): CommandHelp {
  return abouts.get(command) ?? { summary: command.description(), examples: [] };
}

/** A noun that holds commands. */
export function commandGroup(usage: string, about: CommandHelp): Command {
  const { summary, examples, notes = [] } = about;
  const [name = "", ...args] = usage.split(" ");
  const made = new Command(name)
    .description(summary)
    .exitOverride()
    .helpCommand(false)
    .helpOption("-h, --help", "print this")
    // Usage errors are printed like any other refusal, with --json too.
    .configureOutput({ outputError: () => {} });
  for (const arg of args) made.argument(arg);
  abouts.set(made, about);
  const indented = examples.map((line) => `  ${line}`);
  const noteLines = notes.length > 0 ? ["", ...notes] : [];
  return made.addHelpText("after", [...noteLines, "", "Examples:", ...indented].join("\n"));
}

/** An option that accepts one word of a closed set. */
export function choice(flags: string, about: string, words: readonly string[]): Option {
  return new Option(flags, about).choices([...words]);
}
