/** Quoting of shell words: in lines to copy, in completion scripts, and in displayed commands. */

const PLAIN = /^[\w@%+=:,./-]+$/;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}\u2800]/u;

export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Unquoted if it is a single word to a shell, otherwise quoted. */
export const shellWord = (word: string): string => (PLAIN.test(word) ? word : quoted(word));

/** A line of words; null if one cannot be displayed as it is: the copied text would differ from the visible one. */
export function shellLine(words: readonly string[]): string | null {
  return words.some((word) => UNSEEN.test(word)) ? null : words.map(shellWord).join(" ");
}

/** A command as a user would type it: for `sh -c`, only the script. */
export function commandText(argv: readonly string[]): string {
  const [shell = "", flag, script] = argv;
  if (argv.length === 3 && /^(?:\/bin\/)?(?:ba)?sh$/.test(shell) && flag === "-c") return String(script);
  return argv.map(shellWord).join(" ");
}
