/** Rules for commands beyond the shapes of their fields. */
import type { InputOf } from "../../../shared/api/contract.ts";
import { MAX_STDIN_BYTES, type sandboxExec } from "../../../shared/api/executions.ts";
import type { RuleBreak } from "../../core/operation.ts";
import { environmentRules } from "./environment.ts";

/** What both ways to run a command take. */
export type CommandInput = InputOf<typeof sandboxExec>;

/** Fits a frame to the guest with its environment; Linux takes a single argument of 128 KiB at most. */
const MAX_COMMAND_BYTES = 2 * 1024 * 1024;

/** What is wrong with a command beyond its fields' shapes. */
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
  broken.push(...inputRules(input));
  return broken;
}

function inputRules({ stdin, stdin_b64 }: Partial<CommandInput>): RuleBreak[] {
  if (stdin !== undefined && stdin_b64 !== undefined) {
    return [{ field: "stdin_b64", code: "conflicting_fields", message: "Send either stdin or stdin_b64, not both." }];
  }
  if (stdin_b64 !== undefined) return base64Rules("stdin_b64", stdin_b64);
  return sizeRules("stdin", Buffer.byteLength(stdin ?? ""));
}

/** What is wrong with bytes for standard input; nothing when they are absent. */
export function base64Rules(field: string, text = ""): RuleBreak[] {
  if (!isBase64(text)) return [{ field, code: "invalid_base64", message: `${field} is not base64.` }];
  return sizeRules(field, Buffer.byteLength(text, "base64"));
}

function sizeRules(field: string, bytes: number): RuleBreak[] {
  if (bytes <= MAX_STDIN_BYTES) return [];
  return [{ field, code: "length", message: `Standard input may have at most ${MAX_STDIN_BYTES} bytes at once.` }];
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}
