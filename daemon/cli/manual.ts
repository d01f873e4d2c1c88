/** Prints the manual page roomd(1), generated from the command definitions, for the package. */
import type { Command } from "commander";
import { aboutOf, QUIET_FLAG } from "./kit/command.ts";
import { makeProgram } from "./program.ts";

/** The page in roff: a section per heading of `roomd --help`, with each command, its options and examples. */
export function manualPage(): string {
  const program = makeProgram(() => {});
  const about = aboutOf(program);
  const groups = Map.groupBy(program.createHelp().visibleCommands(program), (command) => command.helpGroup());
  return [
    '.TH ROOMD 1 "" "roomd" "User Commands"',
    ".SH NAME",
    `roomd \\- ${escaped(about.summary.replace(/\.$/, ""))}`,
    ".SH SYNOPSIS",
    ".B roomd",
    "COMMAND [OPTION]...",
    ".SH DESCRIPTION",
    ...lines(about.notes ?? []),
    ...[...groups].flatMap(([heading, commands]) => [
      `.SH ${escaped(heading.replace(/:$/, "").toUpperCase())}`,
      ...commands.flatMap((command) => entries(command, ["roomd"])),
    ]),
    ".SH FILES",
    ...option("/etc/roomd/config.toml", "The configuration: `roomd config --example` prints every key."),
    ...option("/var/lib/roomd", "The data, unless data_dir names another directory."),
    ".SH SEE ALSO",
    "The pages in /usr/share/doc/roomd, and /docs of a running service.",
    "",
  ].join("\n");
}

/** Entries of a command with an action, or of a group's subcommands. */
function entries(command: Command, parents: readonly string[]): string[] {
  const words = [...parents, command.name()];
  if (command.commands.length > 0) return command.commands.flatMap((each) => entries(each, words));
  const { notes = [], examples } = aboutOf(command);
  const args = command.registeredArguments.map((each) => (each.required ? `<${each.name()}>` : `[${each.name()}]`));
  const help = command.createHelp();
  return [
    `.SS ${escaped([...words, ...args].join(" "))}`,
    escaped(command.description()),
    ...help
      .visibleOptions(command)
      .filter(({ long }) => long !== QUIET_FLAG && long !== "--help")
      .flatMap(({ flags, description }) => option(flags, description)),
    ...(notes.length > 0 ? [".PP", ...lines(notes)] : []),
    ".PP",
    ".nf",
    ...examples.map(escaped),
    ".fi",
  ];
}

const option = (name: string, about: string) => [".TP", `.B ${escaped(name)}`, escaped(about)];
const lines = (notes: readonly string[]) => notes.map((line) => (line === "" ? ".PP" : escaped(line)));

/** Escapes text: a line that begins with a dot or a quote would be a roff request. */
function escaped(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^([.'])/, "\\&$1");
}

if (import.meta.main) process.stdout.write(manualPage());
