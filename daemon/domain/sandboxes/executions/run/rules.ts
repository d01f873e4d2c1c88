/** Validation rules for commands that go further than the shapes of their fields. */
import type { InputOf } from "../../../../../shared/api/contract.ts";
import type { sandboxExec } from "../../../../../shared/api/executions.ts";
import type { RuleBreak } from "../../../../core/call/operation.ts";
import { environmentRules } from "./environment.ts";

/** Input common to both ways to run a command. */
export type CommandInput = InputOf<typeof sandboxExec>;

/** Limit by which a command with its environment fits into a frame to the guest; Linux accepts a single argument of at most 128 KiB. */
const MAX_COMMAND_BYTES = 2 * 1024 * 1024;

/** Violations in a command other than the shapes of its fields, except the content of standard input. */
export function execRules(input: Partial<CommandInput>): RuleBreak[] {
  const broken = environmentRules(input.env);
  const invalid = (field: string, message: string) => broken.push({ field, code: "invalid_command", message });
  if (input.argv !== undefined && input.command !== undefined)
    invalid("command", "Send either argv or command, not both.");
  if (input.argv === undefined && input.command === undefined) invalid("argv", "Send argv or command.");
  for (const [index, word] of (input.argv ?? []).entries()) {
    if (word.includes("\0")) invalid(`argv[${index}]`, "An argument has a NUL character.");
  }
  const words = input.argv ?? [input.command ?? ""];
  if (words.reduce((bytes, word) => bytes + Buffer.byteLength(word), 0) > MAX_COMMAND_BYTES) {
    const field = input.argv === undefined ? "command" : "argv";
    invalid(field, `${field} may have at most ${MAX_COMMAND_BYTES} bytes.`);
  }
  if (input.argv?.[0] === "") invalid("argv[0]", "The command is empty.");
  if (input.command?.includes("\0")) invalid("command", "The command has a NUL character.");
  if (input.cwd !== undefined && (!input.cwd.startsWith("/") || input.cwd.includes("\0"))) {
    broken.push({ field: "cwd", code: "pattern", message: "cwd must be an absolute path." });
  }
  if (input.stdin !== undefined && input.stdin_b64 !== undefined) {
    const message = "Send either stdin or stdin_b64, not both.";
    broken.push({ field: "stdin_b64", code: "conflicting_fields", message });
  }
  return broken;
}
