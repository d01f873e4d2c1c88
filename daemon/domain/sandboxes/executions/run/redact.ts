/** Redaction of commands for the audit: keeps enough to recognize a command, and nothing that looks like a secret. */
import type { CommandInput } from "./rules.ts";
import type { Stdin } from "./stdin.ts";

const MAX_CHARACTERS = 1024;
const HIDDEN = "***";
/** Scanned prefix of a word: long enough that a secret which begins in the kept part is seen whole. */
const MAX_LOOKED_AT = MAX_CHARACTERS * 4;
const SECRET = /token|secret|passw(?:or)?d|passphrase|api[_-]?key|credential|private[_-]?key/i;

/** `--token=x`, `PASSWORD=x`, `password: x`, up to the value. Each name is matched a single time, from its beginning. */
const ASSIGNED = /(?<![\w-])([\w-]+)["']?\s*[=:]\s*["']?/g;
const VALUE = /[^\s"'&]+/y;
/** `Authorization: Bearer x`, `Authorization: x`, `https://user:x@host`, and `https://x@host` if x is too long for a name. */
const BEARER = /\b((?:bearer|basic)\s+)[\w.~+/=-]+/gi;
const AUTHORIZATION = /\b(authorization["']?\s*[:=]\s*["']?)(?!bearer\s|basic\s)[^\s"']+/gi;
const IN_URL = /(\w:\/\/[^\s:/@]+:)[^\s@/]+(?=@)/g;
const AS_USER = /(\w:\/\/)[^\s:/@]{16,}(?=@)/g;
/** Keys and tokens of this service, keys of others by their usual prefixes, and signed tokens. */
const KEYS = /\b(?:key-|o(?:ac|at|rt|dc)-|(?:ptk|sat|ttk)_|sk-|ghp_|github_pat_|xox[abp]-|AKIA)[\w-]{12,}/g;
const SIGNED = /\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]+)?/g;
/** `--token x`, with the value in a separate word; and `-u user:x`. */
const OPTION = /^--?[\w-]+$/;
const USER = /^(?:-u|--(?:proxy-)?user)$/;
const USER_SECRET = /^([^:]*:).*$/s;

/** Redacted and truncated words. Linear in their length, for any input. */
export function redact(words: readonly string[]): string[] {
  let left = MAX_CHARACTERS;
  const kept: string[] = [];
  for (const [index, word] of words.entries()) {
    if (left <= 0) break;
    const shown = redactWord(word, words[index - 1] ?? "");
    kept.push(shown.slice(0, left));
    left -= shown.length;
  }
  return kept;
}

/** Audit details of a request: of standard input only the size and the digest. */
export function commandFacts(input: CommandInput, stdin: Stdin | null) {
  const { argv, command, cwd, user, output_to } = input;
  return {
    ...(argv ? { argv: redact(argv) } : {}),
    ...(command === undefined ? {} : { command: redact([command])[0] }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
    ...(output_to === undefined ? {} : { output_to }),
    ...(stdin === null ? {} : { stdin: bytesFacts(stdin) }),
  };
}

export const bytesFacts = ({ bytes, sha256 }: Stdin) => ({ size_bytes: bytes.byteLength, sha256 });

function redactWord(word: string, before: string): string {
  if (namesSecret(before)) return HIDDEN;
  return USER.test(before) && USER_SECRET.test(word) ? word.replace(USER_SECRET, `$1${HIDDEN}`) : redactText(word);
}

function namesSecret(option: string): boolean {
  const seen = option.slice(0, MAX_LOOKED_AT);
  return OPTION.test(seen) && SECRET.test(seen);
}

function redactText(text: string): string {
  return redactAssigned(text.slice(0, MAX_LOOKED_AT))
    .replace(BEARER, `$1${HIDDEN}`)
    .replace(AUTHORIZATION, `$1${HIDDEN}`)
    .replace(IN_URL, `$1${HIDDEN}`)
    .replace(AS_USER, `$1${HIDDEN}`)
    .replace(KEYS, HIDDEN)
    .replace(SIGNED, HIDDEN);
}

/** Replaces the values of assignments and keeps the names. */
function redactAssigned(text: string): string {
  let shown = "";
  let done = 0;
  for (const assigned of text.matchAll(ASSIGNED)) {
    const at = assigned.index + assigned[0].length;
    // Skips matches within a value that is already hidden.
    if (assigned.index < done || !SECRET.test(assigned[1] ?? "")) continue;
    VALUE.lastIndex = at;
    const value = VALUE.exec(text)?.[0] ?? "";
    if (value === "") continue;
    shown += text.slice(done, at) + HIDDEN;
    done = at + value.length;
  }
  return shown + text.slice(done);
}
