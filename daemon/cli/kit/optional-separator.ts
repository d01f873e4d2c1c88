/** The `--` before a sandbox's command is optional: options of roomd end at the first word of the command. */
import type { Command } from "commander";

/** Commands that run another command, with the number of operands before it. */
const OPERANDS: Record<string, number> = { exec: 2, shell: 2, run: 0 };

/** The same words, with a `--` after roomd's own. Words that are no option of roomd's stay before it, so that roomd refuses them. */
export function withSeparator(program: Command, args: readonly string[]): readonly string[] {
  const [name = "", ...words] = args;
  const operands = Object.hasOwn(OPERANDS, name) ? OPERANDS[name] : undefined;
  const command = program.commands.find((each) => each.name() === name);
  if (operands === undefined || command === undefined) return args;
  const takesValue = (word: string) =>
    command.options.some(({ long, short, required }) => required && (word === long || word === short));
  let before = 0;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word === "--") return args;
    if (takesValue(word)) at++;
    else if (!/^-./.test(word) && ++before > operands) return [name, ...words.slice(0, at), "--", ...words.slice(at)];
  }
  return args;
}
