/**
 * Proof that a change touches nothing but comments: `npm run check:comments BASE [--texts]` compares the syntax tree of each changed file with that
 * at BASE. With --texts, text in strings, templates and JSX may differ too. Renamed files are compared with their former path.
 *
 * Files other than TypeScript are listed, not compared. Comments that compiler, linter or bundler read are part of the code.
 */
import { readFileSync } from "node:fs";
import { parseSync } from "oxc-parser";

const DIRECTIVE = /^\s*(?:@ts-|biome-ignore|[#@]__(?:PURE|NO_SIDE_EFFECTS)__|@jsx|\/\s*<)/;
const POSITIONS = new Set(["start", "end", "range", "loc"]);

/** The syntax tree as JSON, without positions, and without text if `isTextFree`. Throws if the file cannot be parsed. */
export function codeOf(path: string, text: string, isTextFree = false): string {
  const { program, comments, errors } = parseSync(path, text);
  if (errors[0]) throw new Error(`${path}: ${errors[0].message}`);
  const directives = comments.map(({ value }) => value.trim()).filter((value) => DIRECTIVE.test(value));
  return JSON.stringify([program, directives], (key, value) => {
    if (POSITIONS.has(key)) return undefined;
    if (typeof value === "bigint") return `${value}n`;
    if (!isTextFree || value === null || typeof value !== "object") return value;
    if (value.type === "Literal" && typeof value.value === "string") return { type: "Text" };
    if (value.type === "TemplateElement" || value.type === "JSXText") return { type: "Text" };
    return value;
  });
}

function git(...argv: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["git", ...argv]);
  if (exitCode !== 0) throw new Error(`git ${argv.join(" ")}: ${stderr}`);
  return String(stdout);
}

if (import.meta.main) {
  const [base, mode] = process.argv.slice(2);
  if (base === undefined) throw new Error("usage: npm run check:comments BASE [--texts]");
  const rows = git("diff", "--name-status", "--find-renames", base).trim().split("\n").filter(Boolean);
  const others: string[] = [];
  const differing: string[] = [];
  for (const row of rows) {
    const [, from = "", to = from] = row.split("\t");
    if (!/\.[cm]?tsx?$/.test(to)) others.push(to);
    else if (/^[AD]/.test(row)) differing.push(to);
    else {
      const isTextFree = mode === "--texts";
      const before = codeOf(from, git("show", `${base}:${from}`), isTextFree);
      if (before !== codeOf(to, readFileSync(to, "utf8"), isTextFree)) differing.push(to);
    }
  }
  console.log(`${rows.length - others.length} files of TypeScript compared, ${differing.length} differ`);
  for (const path of differing) console.log(`  ${path}`);
  if (others.length > 0) console.log(`not compared: ${others.join(" ")}`);
  process.exit(differing.length > 0 ? 1 : 0);
}
