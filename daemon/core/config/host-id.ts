/**
 * This host's name: in room records, and in every answer. The operator sets it, or it is generated at the first start and stored in
 * data_dir. So backup and restore include it, and no two hosts have the same by chance.
 */
import { randomBytes } from "node:crypto";
import { type Config, ConfigError } from "./config.ts";
import { readDurable } from "./durable-file.ts";

/** Valid host ids are safe in a header, a file name and a command line. */
const PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const LETTERS = "abcdefghijklmnopqrstuvwxyz234567";
/** 60 bits. */
const LETTER_COUNT = 12;

/** Throws ConfigError if the configured name, or the file, contains no valid name. */
export function hostIdOf({ host_id: given }: Pick<Config, "host_id">, file: string): string {
  if (given !== "") {
    if (PATTERN.test(given)) return given;
    throw new ConfigError(
      `host_id = ${JSON.stringify(given)}: must be at most 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit`,
    );
  }
  const kept = readDurable(file, () => `${newHostId()}\n`)
    .toString()
    .trimEnd();
  if (PATTERN.test(kept)) return kept;
  throw new ConfigError(`${file} does not contain the name that roomd wrote: restore it from a copy, or remove it`);
}

function newHostId(): string {
  const letters = Array.from(randomBytes(LETTER_COUNT), (byte) => LETTERS[byte % LETTERS.length]);
  return `host-${letters.join("")}`;
}
