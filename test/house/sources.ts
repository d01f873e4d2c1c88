/** The list of the repository's files, as the tests of this ring read them. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const NOT_OURS = new Set(["node_modules", "dist", "coverage", ".git"]);

export interface Source {
  /** Relative to the repository. */
  path: string;
  text: string;
}

/** Every file beneath the given paths that is kept in the repository, in order of path. */
export function filesOf(...under: string[]): string[] {
  const found: string[] = [];
  const visit = (directory: string) => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      if (NOT_OURS.has(entry.name)) continue;
      const path = join(directory, entry.name);
      if (entry.isDirectory()) visit(path);
      else if (entry.isFile()) found.push(relative(ROOT, path));
    }
  };
  for (const each of under) visit(join(ROOT, each));
  return found.sort();
}

/** The TypeScript beneath the given folders. */
export function codeOf(...folders: string[]): Source[] {
  return filesOf(...folders)
    .filter((path) => /\.tsx?$/.test(path))
    .map(read);
}

/** Programs of their own: an API client, and the hub, without the parts of its pages that the daemon renders too. */
const OTHER_PROGRAMS = /^daemon\/(?:cli\/|web\/(?!document\.tsx$|components\/(?:static|table)\.tsx$))/;

/** Whether the daemon's process runs the file. */
export const isOfDaemon = (path: string) => path.startsWith("daemon/") && !OTHER_PROGRAMS.test(path);

export const codeOfDaemon = () => codeOf("daemon").filter(({ path }) => isOfDaemon(path));

export function read(path: string): Source {
  return { path, text: readFileSync(join(ROOT, path), "utf8") };
}

/** The lines of a file that match, as `path:line: text`, for a failure that can be clicked. */
export function linesThatMatch({ path, text }: Source, pattern: RegExp): string[] {
  return text
    .split("\n")
    .map((line, index) => ({ line, at: `${path}:${index + 1}` }))
    .filter(({ line }) => pattern.test(line))
    .map(({ line, at }) => `${at}: ${line.trim().slice(0, 120)}`);
}
