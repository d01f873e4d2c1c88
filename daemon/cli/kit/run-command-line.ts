/** Runs one command line and returns its exit status. */
import { type Command, CommanderError } from "commander";
import { requireText } from "./argument-bytes.ts";
import { CliError, EXIT, toCliError } from "./cli-error.ts";
import { aboutOf, JSON_FLAG } from "./command.ts";
import { familiarHint } from "./familiar-names.ts";
import { withSeparator } from "./optional-separator.ts";
import { outputBroke, showError, write } from "./output.ts";
import { withPlace } from "./room-and-agent.ts";

/** Subcommands that exit with the guest command's status; failures of roomd itself use a status that commands do not use. */
const RUNS = [["exec"], ["run"], ["shell"], ["execution", "attach"]];

/** Commander's codes of incomplete command lines. */
const MISSING = new Set(["commander.missingArgument", "commander.missingMandatoryOptionValue"]);

/** Runs one command line, without the program's name; resolves with its exit status and never rejects. */
export async function runCommandLine(
  args: readonly string[],
  makeProgram: (setStatus: (status: number) => void) => Command,
): Promise<number> {
  let status: number = EXIT.ok;
  const program = makeProgram((given) => {
    status = given;
  });
  for (const stream of [process.stdout, process.stderr]) stream.on("error", outputBroke);
  try {
    requireText(args);
    const words = withSeparator(program, withPlace(program, args));
    // `roomd help room create` means `roomd room create --help`.
    const line = words[0] === "help" ? [...words.slice(1), "--help"] : words;
    await program.parseAsync(line.length === 0 ? ["--help"] : line, { from: "user" });
  } catch (error) {
    status = await failed(error, program, withSeparator(program, withPlace(program, args)));
  }
  await Promise.all([write(process.stdout, ""), write(process.stderr, "")]);
  return status;
}

async function failed(error: unknown, program: Command, args: readonly string[]): Promise<number> {
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
  // For a command group without a subcommand, commander has printed the help.
  if (error instanceof CommanderError && error.code.startsWith("commander.help")) return EXIT.usage;
  const isExec = RUNS.some((words) => words.every((word, at) => args[at] === word));
  const known = error instanceof CommanderError ? usageError(error, program, args) : toCliError(error);
  const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  await showError(known, own.includes(JSON_FLAG));
  return isExec ? EXIT.roomd : known.status;
}

/** Commander's error, with the subcommand that was probably meant, or an example if something is missing. */
function usageError({ message, code }: CommanderError, program: Command, args: readonly string[]): CliError {
  const [detail = "", ...similar] = message.replace(/^error: /, "").split("\n");
  const familiar = familiarHint(detail, args);
  const meant = familiar === null ? similar : [familiar];
  const example = MISSING.has(code) ? aboutOf(commandOf(program, args)).examples[0] : undefined;
  const hint = [
    ...meant.map((line) => line.replace(/^\((.*)\)$/, "$1")),
    ...(example === undefined ? [] : [`For example: \`${example}\`.`]),
    "Run it with --help to see its arguments and options.",
  ];
  return new CliError({ detail, errors: [], hint: hint.join(" ") }, EXIT.usage);
}

/** The command named by the first words. */
function commandOf(program: Command, args: readonly string[]): Command {
  const next = program.commands.find((each) => each.name() === args[0] || each.aliases().includes(args[0] ?? ""));
  return next === undefined ? program : commandOf(next, args.slice(1));
}
