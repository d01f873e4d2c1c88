/**
 * Archives of directories, such as backups: written by tar with all properties of a file (holes, numeric owners, extended attributes,
 * ACLs), and unpacked by tar. Concurrent changes by a guest on a drive cannot lead out of it: tar follows no link.
 */
import { runBetween, runProgram } from "./process.ts";
import { type Missed, TarErrors } from "./tar-errors.ts";

export type { Missed };

const SAME_FILES = ["--sparse", "--numeric-owner", "--acls", "--xattrs"];
/** By default tar restores only user attributes; guests also use file capabilities. */
const SAME_ATTRIBUTES = ["--xattrs-include=user.*", "--xattrs-include=security.capability"];
/** Every drive has these, in unlimited number; and the names of attributes, which tar does not escape, are chosen by guests. */
const NO_WARNINGS = ["file-ignored", "timestamp", "xattr-write"].map((warning) => `--warning=no-${warning}`);
/**
 * Directories can be nested step by step until their path is longer than any call accepts, which is 4095 bytes: no tar could re-create
 * them, and with every level the paths in the archive grow. The code that sets ACLs puts some bytes before a path.
 */
const LONGEST_PATH = 4063;
const TOO_LONG = `${"?".repeat(LONGEST_PATH + 1)}*`;
const NOT_TOO_LONG = ["--anchored", "--wildcards", "--wildcards-match-slash", `--exclude=${TOO_LONG}`];
const SYNC_DEADLINE_MS = 600_000;

/** Entries of a directory. */
export interface ArchivePart {
  directory: string;
  names: readonly string[];
}

/**
 * Writes an archive to an open file; a second one written to the same file is appended. Returns whether files changed while they were read,
 * and which guest files are missing from the archive; throws with tar's own message.
 */
export async function writeArchive(
  parts: readonly ArchivePart[],
  to: number,
  theirs: readonly string[] = [],
): Promise<{ changed: boolean; missed: Missed }> {
  // Each name is roomd's own or was read from the directory: `./` prevents its use as an option.
  const words = parts
    .filter(({ names }) => names.length > 0)
    .flatMap(({ directory, names }) => ["-C", directory, ...names.map((name) => `./${name}`)]);
  const how = ["--format=posix", "--one-file-system", ...SAME_FILES, ...NO_WARNINGS, ...NOT_TOO_LONG];
  const complaints = new TarErrors(theirs);
  const argv = ["tar", "--create", "--file=-", ...how, ...words];
  const { changed } = complaints.judge(
    await runBetween(argv, { stdin: "ignore", stdout: to, onComplaint: (line) => complaints.hear(line) }),
  );
  return { changed, missed: complaints.missed };
}

/**
 * Unpacks the output of `writeArchive` from an open file, and flushes it to disk. Returns the guest files that could not be unpacked;
 * throws with tar's own message.
 */
export async function unpackArchive(from: number, directory: string, theirs: readonly string[] = []): Promise<Missed> {
  const how = ["--same-owner", "--same-permissions", ...SAME_FILES, ...SAME_ATTRIBUTES, ...NO_WARNINGS];
  const complaints = new TarErrors(theirs);
  // An archive ends with zeros, and another archive may follow.
  const argv = ["tar", "--extract", "--file=-", "--ignore-zeros", ...how, "-C", directory];
  complaints.judge(
    await runBetween(argv, { stdin: from, stdout: "ignore", onComplaint: (line) => complaints.hear(line) }),
  );
  await runProgram(["sync", "--file-system", directory], SYNC_DEADLINE_MS);
  return complaints.missed;
}
