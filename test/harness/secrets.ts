/**
 * Patterns of the secrets that no daemon may leave behind in plain text. Every kind of secret that the service makes is recognized by its
 * form, so that each daemon of the suite can be scanned when it stops, whatever its tests created.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/**
 * API keys and operators' keys; codes and tokens of applications; tokens of ports, of SSH access and of terminals; signing secrets of
 * webhooks.
 */
const SECRET =
  /\bkey-[0-9A-Za-z]{43}\b|\bo(?:ac|at|rt|dc)-[\w-]{43}(?![\w-])|\b(?:ptk|sat|ttk)_[\w-]{43}(?![\w-])|\bwhsec_[\w+/]{43}=/g;
/** Larger files are those of floods; they would take seconds. */
const MAX_BYTES = 256 * 1024 ** 2;

/** As `FILE: the beginning of the secret`; empty when there are none. */
export function secretsIn(name: string, text: string): string[] {
  return [...new Set(text.match(SECRET) ?? [])].map((secret) => `${name}: ${secret.slice(0, 12)}…`);
}

/** The database's files on disk, the files exported elsewhere, and the logs of guests and of their QEMUs. */
export function filesWithoutSecrets(dataDir: string): string[] {
  const named = existsSync(dataDir) ? readdirSync(dataDir).filter((name) => /^(roomd\.db|audit-heads)/.test(name)) : [];
  return [...named.map((name) => join(dataDir, name)), ...logsBelow(join(dataDir, "sandboxes"))];
}

export function secretsInFiles(files: readonly string[]): string[] {
  return files
    .filter((file) => statSync(file).size <= MAX_BYTES)
    .flatMap((file) => secretsIn(file, readFileSync(file, "latin1")));
}

function logsBelow(sandboxes: string): string[] {
  if (!existsSync(sandboxes)) return [];
  const entries = readdirSync(sandboxes, { recursive: true, withFileTypes: true });
  const logs = entries.filter((entry) => entry.isFile() && !entry.name.endsWith(".qcow2"));
  return logs.map(({ parentPath, name }) => join(parentPath, name));
}
