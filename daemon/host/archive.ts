/**
 * Owns archives of directories, as backups are: written by tar with everything that a file has (holes, owners by number, extended
 * attributes, access lists), and unpacked by it again. Nothing that a guest does on a drive meanwhile leads out of it: tar follows no link.
 */
import { runBetween, runProgram } from "./process.ts";

const SAME_FILES = ["--sparse", "--numeric-owner", "--acls", "--xattrs"];
/** By themselves only those of users come back; capabilities of files are a guest's as well. */
const SAME_ATTRIBUTES = ["--xattrs-include=user.*", "--xattrs-include=security.capability"];
/** What tar ends with when files changed, or went, while it read them. */
const CHANGED_MEANWHILE = 1;
const SYNC_DEADLINE_MS = 600_000;

/** Entries of a directory. */
export interface Part {
  directory: string;
  names: readonly string[];
}

/** Writes an archive to an open file. Returns whether files changed while they were read; throws with tar's own words. */
export async function writeArchive(parts: readonly Part[], to: number): Promise<{ changed: boolean }> {
  // Each name is one of ours or was read from the directory: `./` keeps it from being an option.
  const words = parts
    .filter(({ names }) => names.length > 0)
    .flatMap(({ directory, names }) => ["-C", directory, ...names.map((name) => `./${name}`)]);
  const argv = ["tar", "--create", "--file=-", "--format=posix", "--one-file-system", ...SAME_FILES, ...words];
  const { code, stderr } = await runBetween(argv, { stdin: "ignore", stdout: to });
  if (code > CHANGED_MEANWHILE) throw new Error(whyEnded(code, stderr));
  return { changed: code === CHANGED_MEANWHILE };
}

/** Unpacks an archive from an open file, and has it on disk. Throws with tar's own words. */
export async function unpackArchive(from: number, directory: string): Promise<void> {
  const how = ["--same-owner", "--same-permissions", ...SAME_FILES, ...SAME_ATTRIBUTES];
  const argv = ["tar", "--extract", "--file=-", ...how, "-C", directory];
  const { code, stderr } = await runBetween(argv, { stdin: from, stdout: "ignore" });
  if (code !== 0) throw new Error(whyEnded(code, stderr));
  await runProgram(["sync", "--file-system", directory], SYNC_DEADLINE_MS);
}

/** Tar's first complaint; those after it follow from it. */
function whyEnded(code: number, stderr: string): string {
  return `tar ended with ${code}: ${stderr.split("\n")[0]}`;
}
