/**
 * Word budgets by folder. `bun test/house/language.ts` lowers them to the present counts, prints densities, and raises only those of new
 * folders.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Counts, countsOf, proseByFolder } from "./prose.ts";

const PATH = resolve(import.meta.dirname, "language.json");

/** Bounded kinds of words. */
export const BOUNDED = ["banned", "what", "who", "say", "ask", "where", "one that"] as const;
export type Budget = Record<(typeof BOUNDED)[number], number>;

function lowered(before: Record<string, Budget>): Record<string, Budget> {
  const folders = [...proseByFolder()].sort(([a], [b]) => a.localeCompare(b));
  return Object.fromEntries(
    folders.map(([folder, lines]) => {
      const counts = countsOf(lines);
      const most = (kind: keyof Budget) => Math.min(counts[kind], before[folder]?.[kind] ?? Number.POSITIVE_INFINITY);
      return [folder, Object.fromEntries(BOUNDED.map((kind) => [kind, most(kind)])) as Budget];
    }),
  );
}

function densities(): string[] {
  const perThousand = (counts: Counts, kind: keyof Budget) =>
    ((1000 * counts[kind]) / Math.max(1, counts.words)).toFixed(1).padStart(9);
  const rows = [...proseByFolder()].map(([folder, lines]) => {
    const counts = countsOf(lines);
    return `${folder.padEnd(28)}${String(counts.words).padStart(8)}${BOUNDED.map((kind) => perThousand(counts, kind)).join("")}`;
  });
  return [`${"per 1,000 words".padEnd(28)}   words${BOUNDED.map((kind) => kind.padStart(9)).join("")}`, ...rows.sort()];
}

if (import.meta.main) {
  const before = existsSync(PATH) ? (JSON.parse(readFileSync(PATH, "utf8")) as Record<string, Budget>) : {};
  writeFileSync(PATH, `${JSON.stringify(lowered(before), null, 2)}\n`);
  console.log(densities().join("\n"));
}
