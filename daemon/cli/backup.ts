/**
 * Owns `roomd backup`: one archive of all that must survive, made while the service runs. What is in it, in this order:
 *
 *   backup.json, audit-heads   what it is; heads that were written down before, so that the copy of the audit has all of them
 *   roomd.db                   the database as it was at one moment
 *   the rest of data_dir       drives, kept drives, secrets; read after that moment, so that every room of the database is there
 *   backup-end.json            rooms that ended meanwhile; without it the archive was cut off
 */
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { COMMIT, VERSION } from "../../shared/version.ts";
import { now } from "../core/clock.ts";
import { syncDirectory } from "../core/kept-file.ts";
import type { Paths } from "../core/paths.ts";
import { errnoOf } from "../core/service-error.ts";
import { copyDatabase, readDatabase } from "../db/copy.ts";
import type { EndedRoom } from "../domain/rooms/index.ts";
import { type Missed, type Part, writeArchive } from "../host/archive.ts";
import { LockedError, takeLock } from "../host/lock.ts";
import { CliError, EXIT } from "./cli-error.ts";
import { command } from "./command.ts";
import { type ConfigOption, readConfiguration, withConfigOption, withOperator } from "./operator.ts";
import { bytesText, counted, type JsonOption, printable, say, showValue } from "./output.ts";
import { withProgress } from "./progress.ts";

/** The file by which a backup is known. */
export const BACKUP_FACTS = "backup.json";
/** The file that comes last. */
export const BACKUP_END = "backup-end.json";
export const STANDARD_STREAM = "-";
const OUTPUT = 1;

export interface BackupFacts {
  roomd: string;
  made_at: string;
}

export interface BackupEnd {
  rooms_ended: EndedRoom[];
}

/** Entries of data_dir below which all is guests'. */
export const guestsOwn = (paths: Paths) => [basename(paths.rooms), basename(paths.retired)];

/** What to do where a part of data_dir is elsewhere. */
export const ONE_FILE_SYSTEM =
  "Where drives need a disk of their own, move all of data_dir there: they are renamed from one of its directories to another.";

/** Lines about what of the guests' is not there. */
export function missedLines({ count, first }: Missed, what: string): string[] {
  if (count === 0) return [];
  const more = count > first.length ? [`  and ${count - first.length} more`] : [];
  return [`${counted(count, "path")} of guests ${what}:`, ...first.map((line) => `  ${printable(line)}`), ...more];
}

export function backupCommand(): Command {
  const about = {
    summary: "write everything that must survive into one archive while the service runs (run on the host)",
    notes: [
      "It holds the database with keys and audit, every drive, and the service's secrets. Protect it as you protect",
      "the keys. Templates (built again) and sandboxes (useless without their memory) are not in it. Drives are read",
      "while guests may write to them. Where that matters, run `roomd sandbox standby` first.",
      "Each backup is recorded: `roomd audit --host --event backup.`",
    ],
    examples: ["roomd backup /var/backups/roomd.tar", "roomd backup - | ssh backup.example.org 'cat >roomd.tar'"],
  };
  return withConfigOption(command("backup <file>", about)).action(
    async (file: string, options: JsonOption & ConfigOption) => {
      const { paths } = readConfiguration(options);
      if (!existsSync(paths.database)) {
        throw new CliError(`There is no service in ${paths.data}. Is data_dir right?`, EXIT.usage);
      }
      requireDrives(paths);
      // Before the copy: what comes of the backup has it too.
      await withOperator(options, (operator) => operator.record("backup.begun", { file }));
      const { changed, missed, size_bytes, ...facts } = await withProgress("copying the database", (progress) =>
        oneAtATime(paths, () => writeTo(file, (to) => backUp(paths, to, () => progress.say("archiving drives")))),
      );
      if (changed)
        await say("roomd: files of drives changed while they were read; the backup has each as it was at that moment");
      const told = missedLines(missed, "could not be read and are not in the backup");
      if (told.length > 0) await say(...told.map((line) => `roomd: ${line}`));
      if (file === STANDARD_STREAM) return;
      const made = { file: resolve(file), size_bytes, ...facts, missed };
      await showValue(made, options, () => [`wrote ${file}, ${bytesText(size_bytes)}`]);
    },
  );
}

/** Archives follow no link: one in the place of the drives would be all that there is of them. */
function requireDrives(paths: Paths): void {
  for (const directory of [paths.rooms, paths.retired]) {
    if (!isLink(directory)) continue;
    throw new CliError({
      detail: `${directory} is a symbolic link; what it points to would not be in the backup.`,
      errors: [],
      hint: `Move that directory into its place. ${ONE_FILE_SYSTEM}`,
    });
  }
}

export const isLink = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;

async function oneAtATime<T>(paths: Paths, work: () => Promise<T>): Promise<T> {
  const unlock = lock(paths);
  try {
    // What a backup that was cut off has left.
    rmSync(paths.backup, { recursive: true, force: true });
    mkdirSync(paths.backup, { mode: 0o700 });
    return await work();
  } finally {
    rmSync(paths.backup, { recursive: true, force: true });
    unlock();
  }
}

function lock(paths: Paths): () => void {
  try {
    return takeLock(paths.backup_lock, "data_dir");
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
    throw new CliError(`Another backup is being made (pid ${error.holder}).`);
  }
}

type Made = { changed: boolean; missed: Missed } & BackupFacts;

async function backUp(paths: Paths, to: number, onCopied: () => void): Promise<Made> {
  const facts: BackupFacts = { roomd: `${VERSION} (${COMMIT})`, made_at: now() };
  const write = (name: string, value: object) =>
    writeFileSync(join(paths.backup, name), `${JSON.stringify(value)}\n`, { mode: 0o600 });
  write(BACKUP_FACTS, facts);
  for (const heads of [`${paths.audit_heads}.1`, paths.audit_heads]) {
    if (existsSync(heads)) copyFileSync(heads, join(paths.backup, basename(heads)));
  }
  const copy = join(paths.backup, basename(paths.database));
  copyDatabase(paths.database, copy);
  onCopied();
  const copied: Part = { directory: paths.backup, names: readdirSync(paths.backup) };
  const written = await writeArchive([copied, whatIsKept(paths)], to, guestsOwn(paths));
  const { roomsEndedSince } = await import("../domain/rooms/index.ts");
  const rooms_ended = readDatabase(copy, (then) => readDatabase(paths.database, (now) => roomsEndedSince(then, now)));
  write(BACKUP_END, { rooms_ended } satisfies BackupEnd);
  await writeArchive([{ directory: paths.backup, names: [BACKUP_END] }], to);
  return { ...facts, ...written };
}

/** Drives of rooms first: one that is put away meanwhile is then among the kept ones, which are last, or at both places. */
function whatIsKept(paths: Paths): Part {
  const [rooms, retired] = [basename(paths.rooms), basename(paths.retired)];
  // The first drive of all that is kept may be put away meanwhile.
  mkdirSync(paths.retired, { recursive: true, mode: 0o700 });
  const found = readdirSync(paths.data).filter((name) => !isLeftOut(paths, name));
  const others = found.filter((name) => name !== rooms && name !== retired);
  return { directory: paths.data, names: [...found.filter((name) => name === rooms), ...others, retired] };
}

/** What is made again, belongs to a process, or is in the backup as a copy. Whatever else lies in data_dir is kept, whoever put it there. */
function isLeftOut(paths: Paths, name: string): boolean {
  const made = [
    paths.templates,
    paths.template_cache,
    paths.org_templates,
    paths.sandboxes,
    paths.trials,
    paths.films,
    paths.savings,
    paths.reserve,
    paths.backup,
    paths.before_upgrade,
  ];
  const copied = [
    paths.database,
    `${paths.database}-wal`,
    `${paths.database}-shm`,
    paths.audit_heads,
    `${paths.audit_heads}.1`,
  ];
  return (
    name.endsWith(".lock") || name.endsWith(".log") || [...made, ...copied].some((path) => basename(path) === name)
  );
}

/** A file has its name once it is whole and on disk. */
async function writeTo<T>(file: string, work: (to: number) => Promise<T>): Promise<T & { size_bytes: number }> {
  if (file === STANDARD_STREAM) {
    if (process.stdout.isTTY) throw new CliError("A backup is binary: send it to a file or a pipe.", EXIT.usage);
    return { ...(await work(OUTPUT)), size_bytes: 0 };
  }
  if (existsSync(file)) throw new CliError(`${file} already exists. Choose another name, or remove it.`);
  const draft = `${file}.part`;
  let to: number;
  try {
    rmSync(draft, { force: true });
    to = openSync(draft, "wx", 0o600);
  } catch (error) {
    throw new CliError(`${file} cannot be written: ${errnoOf(error) ?? String(error)}.`);
  }
  try {
    const done = await work(to);
    fsyncSync(to);
    renameSync(draft, file);
    syncDirectory(dirname(resolve(file)));
    return { ...done, size_bytes: Bun.file(file).size };
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    closeSync(to);
  }
}
