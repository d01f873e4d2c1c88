/** Accepts ROOM/AGENT as one word in commands that take a room and an agent, as `roomd cp` and `roomd ls` do. */
import type { Command } from "commander";

const PLACE = /^([^/:\s-][^/:\s]*)\/([^/:\s]+)$/;

/** The same words, with ROOM/AGENT in the place of a room split into two words. No room or agent name contains a slash. */
export function withPlace(program: Command, args: readonly string[]): readonly string[] {
  let command = program;
  let at = 0;
  for (; at < args.length; at++) {
    const next = command.commands.find((each) => each.name() === args[at]);
    if (next === undefined) break;
    command = next;
  }
  const [room, agent] = command.registeredArguments.map((each) => each.name());
  if (room !== "room" || agent !== "agent") return args;
  for (; at < args.length; at++) {
    const word = args[at] ?? "";
    if (word === "--") return args;
    const takesValue = command.options.some(({ long, short, required }) => required && [long, short].includes(word));
    if (takesValue) at++;
    else if (!/^-./.test(word)) {
      const [, ...names] = PLACE.exec(word) ?? [];
      return names.length === 0 ? args : [...args.slice(0, at), ...names, ...args.slice(at + 1)];
    }
  }
  return args;
}
