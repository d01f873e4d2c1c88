/** `roomd completion`: scripts with which shells complete command lines, generated from the program's own commands. */
import { Argument, type Command } from "commander";
import { command } from "../kit/command.ts";
import { type JsonOption, print } from "../kit/output.ts";
import { namedArguments } from "./completion-names.ts";
import { type CompletedCommand, SHELLS, type Shell, scriptFor } from "./completion-scripts.ts";

export function completionCommand(): Command {
  const made = command("completion", {
    summary: "print a script that completes roomd's commands in your shell",
    notes: [
      "Names of rooms, agents, executions and the like come from the service when the tab key is pressed.",
      "With --json: the commands, options and words that it knows.",
    ],
    examples: [
      "roomd completion bash >/etc/bash_completion.d/roomd",
      'eval "$(roomd completion bash)"',
      "roomd completion zsh >/usr/local/share/zsh/site-functions/_roomd",
      "roomd completion fish >~/.config/fish/completions/roomd.fish",
    ],
  });
  return made
    .addArgument(new Argument("<shell>", "which shell").choices(SHELLS))
    .action(async (shell: Shell, options: JsonOption) => {
      const commands = [...completed(made.parent ?? made)];
      await print(options.json ? JSON.stringify({ commands }) : scriptFor(shell, commands).trimEnd());
    });
}

/** A command and its descendants, as listed in their help. */
function* completed(from: Command, words: readonly string[] = []): Generator<CompletedCommand> {
  const help = from.createHelp();
  const below = help.visibleCommands(from);
  yield {
    words: words.join(" "),
    commands: below.map((each) => ({ word: each.name(), about: each.description() })),
    options: help.visibleOptions(from).map(({ long, short, description, required, argChoices }) => ({
      flags: [short, long].filter((flag) => flag !== undefined),
      about: description,
      takesValue: required,
      choices: argChoices ?? [],
    })),
    choices: from.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    named: namedArguments(words.join(" "), from.registeredArguments).map((each) => each.name()),
  };
  for (const each of below) yield* completed(each, [...words, each.name()]);
}
