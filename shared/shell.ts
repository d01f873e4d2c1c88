/** Owns words as a shell takes them: in lines that people copy, in completion scripts, and in how a command is shown. */

const PLAIN = /^[\w@%+=:,./-]+$/;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}\u2800]/u;

export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** As it is where that is one word to a shell, else quoted. */
export const shellWord = (word: string): string => (PLAIN.test(word) ? word : quoted(word));

/** A line of words; null where one cannot be shown as it is: what one copies would not be what one sees. */
export function shellLine(words: readonly string[]): string | null {
  return words.some((word) => UNSEEN.test(word)) ? null : words.map(shellWord).join(" ");
}

/** A command as one would type it: what a shell runs is the shell's own words. */
export function commandText(argv: readonly string[]): string {
  const [shell = "", flag, script] = argv;
  if (argv.length === 3 && /^(?:\/bin\/)?(?:ba)?sh$/.test(shell) && flag === "-c") return String(script);
  return argv.map(shellWord).join(" ");
}
