/** Owns what the audit keeps of a command: enough to know it by, and nothing that looks like a secret. */
import { createHash } from "node:crypto";
import type { CommandInput } from "./rules.ts";

const MOST_CHARACTERS = 1024;
const HIDDEN = "***";
const NAMES = "[\\w-]*(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|credential|private[_-]?key)[\\w-]*";

/** `--token=x`, `PASSWORD=x`, `password: x`: the value goes, the name stays. */
const ASSIGNED = new RegExp(`(${NAMES}["']?\\s*[=:]\\s*["']?)[^\\s"'&]+`, "gi");
/** `Authorization: Bearer x` and `https://user:x@host`. */
const BEARER = /\b((?:bearer|basic)\s+)[\w.~+/=-]+/gi;
const IN_URL = /(\w:\/\/[^\s:/@]+:)[^\s@/]+(?=@)/g;
/** Keys of this service and of others, by their usual beginnings. */
const KEYS = /\b(?:key-|sk-|ghp_|github_pat_|xox[abp]-|AKIA)[\w-]{12,}/g;
/** `--token x`, of which the value is a word of its own. */
const OPTION = new RegExp(`^--?${NAMES}$`, "i");

/** Words as they may be kept, cut where they are long. */
export function redact(words: readonly string[]): string[] {
  const shown = words.map((word, index) => (OPTION.test(words[index - 1] ?? "") ? HIDDEN : redactText(word)));
  let left = MOST_CHARACTERS;
  const cut: string[] = [];
  for (const word of shown) {
    if (left <= 0) break;
    cut.push(word.slice(0, left));
    left -= word.length;
  }
  return cut;
}

/** What is kept of a request: of standard input only how much it was, and its digest. */
export function commandFacts(input: CommandInput, stdin: Uint8Array | null) {
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

export function bytesFacts(bytes: Uint8Array) {
  return { size_bytes: bytes.byteLength, sha256: createHash("sha256").update(bytes).digest("hex") };
}

function redactText(text: string): string {
  return text
    .slice(0, MOST_CHARACTERS * 4)
    .replace(ASSIGNED, `$1${HIDDEN}`)
    .replace(BEARER, `$1${HIDDEN}`)
    .replace(IN_URL, `$1${HIDDEN}`)
    .replace(KEYS, HIDDEN);
}
