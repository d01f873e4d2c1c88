/**
 * Owns what a backup is: one archive of all that must survive, made while the service runs. What is in it, in this order:
 *
 *   backup.json, audit-heads   what it is; heads that were written down before, so that the copy of the audit has all of them
 *   roomd.db                   the database as it was at one moment
 *   audit                      closed days of the audit that it names; one to an object store has none, since they are there already
 *   the rest of data_dir       drives, kept drives, secrets; read after that moment, so that every room of the database is there
 *   backup-end.json            rooms that ended meanwhile; without it the archive was cut off
 */
import {
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { COMMIT, VERSION } from "../../shared/version.ts";
import { now } from "../core/clock.ts";
import { AUDIT_DAYS, type Paths } from "../core/paths.ts";
import { errnoOf } from "../core/service-error.ts";
import { checkCopy, readDatabase } from "../db/copy.ts";
import { closedFiles } from "../domain/audit/days/store.ts";
import type { EndedRoom } from "../domain/rooms/index.ts";
import { type Missed, type Part, writeArchive } from "../host/archive.ts";
import { LockedError, takeLock } from "../host/lock.ts";
import { CliError, EXIT } from "./cli-error.ts";
import { type CopyBounds, copyDatabase } from "./database-copy.ts";

/** The file by which a backup is known. */
export const BACKUP_FACTS = "backup.json";
/** The file that comes last. */
export const BACKUP_END = "backup-end.json";

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

/** Throws CliError where there is nothing to back up. */
export function requireService(paths: Paths): void {
  if (!existsSync(paths.database)) {
    throw new CliError(`There is no service in ${paths.data}. Is data_dir right?`, EXIT.usage);
  }
  requireDrives(paths);
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

export async function oneAtATime<T>(paths: Paths, work: () => Promise<T>): Promise<T> {
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

/** A closed day of the audit, as the copy of the database names it. */
interface CopiedDay {
  name: string;
  sha256: string;
  file: string;
}

/** The database as it was at one moment, and the files that it names. */
export interface Copied {
  facts: BackupFacts;
  days: CopiedDay[];
  /** Names of those whose files are missing, or have another size. */
  missing: string[];
  purged: { name: string; sha256: string; removed_at: string }[];
}

/** Puts a copy of the database where the backup is put together, with further names of the files of closed days: they may be purged meanwhile. */
export async function copyService(paths: Paths, bounds: CopyBounds): Promise<Copied> {
  const facts: BackupFacts = { roomd: `${VERSION} (${COMMIT})`, made_at: now() };
  writeFact(paths, BACKUP_FACTS, facts);
  for (const heads of [`${paths.audit_heads}.1`, paths.audit_heads]) {
    if (existsSync(heads)) copyFileSync(heads, join(paths.backup, basename(heads)));
  }
  await copyDatabase(paths.database, copyOf(paths), bounds);
  checkCopy(copyOf(paths));
  const copied: Copied = { facts, days: [], missing: [], purged: [] };
  const to = join(paths.backup, AUDIT_DAYS);
  mkdirSync(to, { mode: 0o700 });
  for (const { name, sha256, size_bytes, removed_at } of readDatabase(copyOf(paths), closedFiles)) {
    const file = join(to, name);
    if (removed_at !== null) copied.purged.push({ name, sha256, removed_at });
    else if (linked(join(paths.audit_days, name), file, size_bytes)) copied.days.push({ name, sha256, file });
    else copied.missing.push(name);
  }
  return copied;
}

const copyOf = (paths: Paths) => join(paths.backup, basename(paths.database));

const writeFact = (paths: Paths, name: string, value: object) =>
  writeFileSync(join(paths.backup, name), `${JSON.stringify(value)}\n`, { mode: 0o600 });

/** False where there is no such file of that size. */
function linked(from: string, to: string, sizeBytes: number): boolean {
  if (statSync(from, { throwIfNoEntry: false })?.size !== sizeBytes) return false;
  try {
    linkSync(from, to);
  } catch (error) {
    // It is on a file system of its own.
    if (errnoOf(error) !== "EXDEV") throw error;
    copyFileSync(from, to);
  }
  return true;
}

export type Made = { changed: boolean; missed: Missed; days_missing: string[] } & BackupFacts;

/** Writes the archive of what was copied, and of the rest. */
export async function backUp(
  paths: Paths,
  to: number,
  { facts, missing }: Copied,
  { withDays }: { withDays: boolean },
): Promise<Made> {
  const names = readdirSync(paths.backup).filter((name) => withDays || name !== AUDIT_DAYS);
  const written = await writeArchive([{ directory: paths.backup, names }, whatIsKept(paths)], to, guestsOwn(paths));
  const { roomsEndedSince } = await import("../domain/rooms/index.ts");
  const rooms_ended = readDatabase(copyOf(paths), (then) =>
    readDatabase(paths.database, (now) => roomsEndedSince(then, now)),
  );
  writeFact(paths, BACKUP_END, { rooms_ended } satisfies BackupEnd);
  await writeArchive([{ directory: paths.backup, names: [BACKUP_END] }], to);
  return { ...facts, ...written, days_missing: missing };
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
    paths.room_files,
    paths.reserve,
    paths.backup,
    paths.before_upgrade,
    paths.backup_state,
  ];
  const copied = [
    paths.database,
    `${paths.database}-wal`,
    `${paths.database}-shm`,
    paths.audit_heads,
    `${paths.audit_heads}.1`,
    paths.audit_days,
  ];
  return (
    name.endsWith(".lock") || name.endsWith(".log") || [...made, ...copied].some((path) => basename(path) === name)
  );
}
