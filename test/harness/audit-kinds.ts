/** The kinds of audit records that the daemon can write: those of the list of operations, and those named in the code that writes them. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { CONFIG_KEYS } from "../../daemon/core/config/config.ts";
import { operations } from "../../shared/api/operations.ts";

const WRITERS = ["daemon/domain", "daemon/edge"].map((folder) => resolve(import.meta.dirname, "../..", folder));

/** Of these families, such as `auth`, in order. */
export function auditKinds(families: readonly string[]): string[] {
  const isOf = (event: string) => families.includes(event.split(".")[0] ?? "");
  const ofOperations = Object.values(operations).flatMap(({ audit }) => audit ?? []);
  const literal = new RegExp(`"((?:${families.join("|")})\\.[a-z_]+)"`, "g");
  const written = WRITERS.flatMap(sourcesBelow).flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(literal)].map(([, name = ""]) => name),
  );
  // Configuration and the pages of docs/ have names of the same form.
  const named = written.filter((name) => !Object.hasOwn(CONFIG_KEYS, name) && !name.endsWith(".md"));
  return [...new Set([...ofOperations, ...named].filter(isOf))].sort();
}

function sourcesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map(({ parentPath, name }) => join(parentPath, name));
}
