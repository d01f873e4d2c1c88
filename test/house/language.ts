/** Densities of words that CONTRIBUTING.md avoids. `bun test/house/language.ts` prints them by folder. */
import { type Counts, countsOf, proseByFolder } from "./prose.ts";

/** Maximum per 1,000 words: twice the density of well-read sources of this field. Banned phrases have a standard term instead. */
export const MAX_PER_THOUSAND = {
  banned: 0,
  what: 2.5,
  who: 0.8,
  say: 0.5,
  ask: 0.8,
  where: 1.5,
  "one that": 0.5,
} as const;
export type WordKind = keyof typeof MAX_PER_THOUSAND;
export const KINDS = Object.keys(MAX_PER_THOUSAND) as WordKind[];

function densities(): string[] {
  const perThousand = (counts: Counts, kind: WordKind) =>
    ((1000 * counts[kind]) / Math.max(1, counts.words)).toFixed(2).padStart(9);
  const rows = [...proseByFolder()].map(([folder, lines]) => {
    const counts = countsOf(lines);
    return `${folder.padEnd(28)}${String(counts.words).padStart(8)}${KINDS.map((kind) => perThousand(counts, kind)).join("")}`;
  });
  return [`${"per 1,000 words".padEnd(28)}   words${KINDS.map((kind) => kind.padStart(9)).join("")}`, ...rows.sort()];
}

if (import.meta.main) console.log(densities().join("\n"));
