/**
 * The backup format: one archive of all data that must survive, made while the service runs. Contents, in this order:
 *
 *   backup.json, audit-heads   its description; audit heads copied before the database, so that the copy of the audit has all of them
 *   roomd.db                   the database at one moment
 *   audit                      closed days of the audit that the database names; absent in an object store, which has them already
 *   the rest of data_dir       drives, kept drives, secrets; read after that moment, so that every room of the database is there
 *   backup-end.json            rooms that ended during the backup; if it is missing, the archive is truncated
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
import { COMMIT, VERSION } from "../../../shared/version.ts";
import { now } from "../../core/clock.ts";
import { AUDIT_DAYS, type Paths } from "../../core/config/paths.ts";
import { errnoOf } from "../../core/service-error.ts";
import { checkCopy, readDatabase } from "../../db/copy.ts";
import { closedFiles } from "../../domain/audit/days/store.ts";
import type { EndedRoom } from "../../domain/rooms/index.ts";
import { type ArchivePart, type Missed, writeArchive } from "../../host/archive.ts";
import { LockedError, takeLock } from "../../host/lock.ts";
import { CliError, EXIT } from "../kit/cli-error.ts";
import { type CopyBounds, copyDatabase } from "./database-copy.ts";

/** The file that identifies a backup. */
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

/** Entries of data_dir that contain only data of guests. */
export const guestsOwn = (paths: Paths) => [basename(paths.rooms), basename(paths.retired)];

/** Hint for a part of data_dir that is on another file system. */
export const ONE_FILE_SYSTEM =
  "If drives need a separate disk, move all of data_dir to it: drives are renamed between directories of data_dir.";

/** Throws CliError if there is nothing to back up. */
export function requireService(paths: Paths): void {
  if (!existsSync(paths.database)) {
    throw new CliError(`There is no service in ${paths.data}. Is data_dir right?`, EXIT.usage);
  }
  requireDrives(paths);
}

/** Archives do not follow symbolic links: if the drives' directory were one, the archive would contain only the link. */
function requireDrives(paths: Paths): void {
  for (const directory of [paths.rooms, paths.retired]) {
    if (!isLink(directory)) continue;
    throw new CliError({
      detail: `${directory} is a symbolic link; its target would not be in the backup.`,
      errors: [],
      hint: `Move that directory into its place. ${ONE_FILE_SYSTEM}`,
    });
  }
}

export const isLink = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;

export async function oneAtATime<T>(paths: Paths, work: () => Promise<T>): Promise<T> {
  const unlock = lock(paths);
  try {
    // Leftovers of an interrupted backup.
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

/** A closed day of the audit, as listed in the copied database. */
interface CopiedDay {
  name: string;
  sha256: string;
  file: string;
}

/** A copy of the database at one point in time, and the files that it references. */
export interface Copied {
  facts: BackupFacts;
  days: CopiedDay[];
  /** Names of the days with missing files, or files of another size. */
  missing: string[];
  purged: { name: string; sha256: string; removed_at: string }[];
}

/**
 * Copies the database into the backup's staging directory and hard-links the files of closed days there: they may be purged during the
 * backup.
 */
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

/** False if there is no such file of that size. */
function linked(from: string, to: string, sizeBytes: number): boolean {
  if (statSync(from, { throwIfNoEntry: false })?.size !== sizeBytes) return false;
  try {
    linkSync(from, to);
  } catch (error) {
    // The source is on another file system.
    if (errnoOf(error) !== "EXDEV") throw error;
    copyFileSync(from, to);
  }
  return true;
}

export type BackupReport = { changed: boolean; missed: Missed; days_missing: string[] } & BackupFacts;

/** Writes the archive of the copied service data and of the rest of data_dir. */
export async function backUp(
  paths: Paths,
  to: number,
  { facts, missing }: Copied,
  { withDays }: { withDays: boolean },
): Promise<BackupReport> {
  const names = readdirSync(paths.backup).filter((name) => withDays || name !== AUDIT_DAYS);
  const written = await writeArchive([{ directory: paths.backup, names }, whatIsKept(paths)], to, guestsOwn(paths));
  const { roomsEndedSince } = await import("../../domain/rooms/index.ts");
  const rooms_ended = readDatabase(copyOf(paths), (then) =>
    readDatabase(paths.database, (now) => roomsEndedSince(then, now)),
  );
  writeFact(paths, BACKUP_END, { rooms_ended } satisfies BackupEnd);
  await writeArchive([{ directory: paths.backup, names: [BACKUP_END] }], to);
  return { ...facts, ...written, days_missing: missing };
}

/** Drives of rooms first: a drive that is retired during the backup is then among the kept drives, which are last, or in both places. */
function whatIsKept(paths: Paths): ArchivePart {
  const [rooms, retired] = [basename(paths.rooms), basename(paths.retired)];
  // The first kept drive of all may be retired during the backup.
  mkdirSync(paths.retired, { recursive: true, mode: 0o700 });
  const found = readdirSync(paths.data).filter((name) => !isLeftOut(paths, name));
  const others = found.filter((name) => name !== rooms && name !== retired);
  return { directory: paths.data, names: [...found.filter((name) => name === rooms), ...others, retired] };
}

/**
 * Entries that can be rebuilt, belong to a process, or are in the backup as a copy. Everything else in data_dir is backed up, whatever its
 * origin.
 */
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
