/** Writes docs/reference.md from the command definitions (`bun run reference`). A test verifies that the page is current. */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { aboutOf, JSON_FLAG, QUIET_FLAG } from "./kit/command.ts";
import { makeProgram } from "./program.ts";

const PAGE = resolve(import.meta.dirname, "../../docs/reference.md");
const EVERYWHERE = [JSON_FLAG, QUIET_FLAG];

/** The page: a section per heading of `roomd --help`, with each command, its options and examples. */
export function referencePage(): string {
  const program = makeProgram(() => {});
  const groups = Map.groupBy(program.createHelp().visibleCommands(program), (command) => command.helpGroup());
  const { notes = [] } = aboutOf(program);
  return `${[
    "# Reference of the command line",
    "This page is made from the commands' own descriptions by `bun run reference`. `roomd --help` and `--help` of each command print the same.",
    "Every command takes `--json` (print JSON for programs instead of text for people), `--quiet` (do not show progress on the terminal) and `--help`.",
    fenced("text", notes),
    ...[...groups].flatMap(([heading, commands]) => [
      `## ${heading.replace(/:$/, "")}`,
      ...commands.flatMap((command) => sections(command, ["roomd"])),
    ]),
  ].join("\n\n")}\n`;
}

/** Sections of a command and its subcommands. */
function sections(command: Command, parents: readonly string[]): string[] {
  const words = [...parents, command.name()];
  const { notes = [], examples } = aboutOf(command);
  const args = command.registeredArguments.map((each) => {
    const name = each.variadic ? `${each.name()}...` : each.name();
    return each.required ? `<${name}>` : `[${name}]`;
  });
  const named = command.registeredArguments.filter(({ description }) => description);
  const options = command.options.filter(({ long }) => !EVERYWHERE.includes(long ?? ""));
  const listed = [
    ...named.map((each) => item(each.name(), each.description, each.defaultValue, each.argChoices)),
    ...options.map((each) => item(each.flags, each.description, each.defaultValue, each.argChoices)),
  ];
  return [
    `### ${words.join(" ")}`,
    sentence(command.description()),
    ...(command.commands.length > 0 ? [] : [fenced("text", [[...words, ...args].join(" ")])]),
    ...(listed.length > 0 ? [listed.join("\n")] : []),
    ...(notes.length > 0 ? [notes.join("\n")] : []),
    ...(command.commands.length > 0 ? [] : [fenced("sh", examples)]),
    ...command.commands.flatMap((each) => sections(each, words)),
  ];
}

function item(flags: string, about: string, value: unknown, choices: readonly string[] | undefined): string {
  const more = [
    ...(choices ? [`one of ${choices.map((each) => `\`${each}\``).join(", ")}`] : []),
    ...(value === undefined ? [] : [`default \`${String(value)}\``]),
  ];
  return `- \`${flags}\`: ${about}${more.length > 0 ? ` (${more.join("; ")})` : ""}`;
}

const fenced = (language: string, lines: readonly string[]) => [`\`\`\`${language}`, ...lines, "```"].join("\n");
const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.:;,]$/.test(text) ? "" : ".");

if (import.meta.main) writeFileSync(PAGE, referencePage());
