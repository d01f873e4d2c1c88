/** How documents call `roomd`: the words of each call, compared with the commands and options that there are. */
import type { Command } from "commander";
import { makeProgram } from "../../daemon/cli/program.ts";

const CALL = /(?<![\w./-])(?:dist\/)?roomd ((?:[^|&;<>'"`$()\\#]|\$\w+)*)/g;
const EVERYWHERE = ["--help", "-h", "--version"];

/** Unknown words in a line's calls of `roomd`, each as `call: word`. */
export function unknownIn(line: string): string[] {
  return [...line.matchAll(CALL)].flatMap(([call, rest = ""]) => {
    const words = rest.split(" -- ")[0]?.trim().split(/\s+/) ?? [];
    const unknown = firstUnknown(words);
    return unknown === null ? [] : [`${call}: ${unknown}`];
  });
}

function firstUnknown(words: readonly string[]): string | null {
  let at: Command = makeProgram(() => {});
  for (const word of words) {
    if (/^--?\w/.test(word)) {
      if (!knows(at, String(word.split("=")[0]))) return word;
    } else if (at.commands.length > 0 && /^[a-z]/.test(word)) {
      // `set|get` in a sentence names two.
      const named = word.split("|").map((name) => at.commands.find((each) => each.name() === name));
      const [first] = named;
      if (first && !named.includes(undefined)) at = first;
      else if (!verbless(at)) return word;
      else break;
    }
  }
  return null;
}

/** The verb of a noun that is called without one, as `roomd audit`. */
const verbless = (command: Command) => command.commands.find((each) => each.name() === "list");

function knows(command: Command, flag: string): boolean {
  const options = [...command.options, ...(verbless(command)?.options ?? [])];
  return EVERYWHERE.includes(flag) || options.some(({ long, short }) => flag === long || flag === short);
}
