/**
 * `roomd restore`: a backup becomes the service's data. It is unpacked into a separate directory, checked, and moved into place, the
 * database last: before that there is no service.
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import type { Config } from "../../core/config/config.ts";
import { syncDirectory } from "../../core/config/durable-file.ts";
import { makePaths, type Paths } from "../../core/config/paths.ts";
import { errnoOf } from "../../core/service-error.ts";
import { changeCopy, readDatabase, whyUnusable } from "../../db/copy.ts";
import { closedFiles } from "../../domain/audit/days/store.ts";
import { download, fetchDay, readName, readUrl } from "../../domain/backups/index.ts";
import { type Missed, unpackArchive } from "../../host/archive.ts";
import { syncFileSystem } from "../../host/files/clone.ts";
import { isMountPoint } from "../../host/files/mount-point.ts";
import { freeLeftovers, guestProcesses } from "../../host/guest/leftovers.ts";
import { crossedDirectory } from "../../host/isolation/directories.ts";
import { takeLock } from "../../host/lock.ts";
import { writeInto } from "../../host/pipe.ts";
import { CliError, EXIT } from "../kit/cli-error.ts";
import { command } from "../kit/command.ts";
import { counted, type JsonOption, showValue } from "../kit/output.ts";
import { withProgress } from "../kit/progress.ts";
import { missedLines, STANDARD_STREAM } from "./backup.ts";
import {
  BACKUP_END,
  BACKUP_FACTS,
  type BackupEnd,
  type BackupFacts,
  guestsOwn,
  isLink,
  ONE_FILE_SYSTEM,
} from "./backup-archive.ts";
import { requirePlan, toldOf } from "./backup-store.ts";
import { type ConfigOption, ownConfiguration, withConfigOption, withOperator } from "./operator.ts";

const INPUT = 0;

export function restoreCommand(setStatus: (status: number) => void): Command {
  const about = {
    summary:
      "restore the service's data from a backup; requires that there is no data and no running daemon (run on the host)",
    notes: [
      "Rooms, drives, keys and the audit are restored. Sandboxes are not: each becomes `failed` when the daemon starts.",
      "Exit status 1 when the audit in the backup is broken.",
    ],
    examples: [
      "roomd restore /var/backups/roomd.tar",
      "ssh backup.example.org cat roomd.tar | roomd restore -",
      "roomd restore --from s3://backups/roomd/host-1-20261127T095500123Z.roomd",
    ],
  };
  const from = "--from <url>";
  return withConfigOption(
    command("restore [file]", about).option(from, "backup in the object store (roomd backup list)"),
  ).action(async (file: string | undefined, options: JsonOption & ConfigOption & { from?: string }) => {
    const { config, paths } = ownConfiguration(options);
    const source = sourceOf(config, file, options.from);
    const facts = await withProgress("unpacking the backup", () => restore(paths, source, options));
    const found = await withProgress("reading the whole audit", () =>
      withOperator(options, async (operator) => {
        const { missed, ...details } = facts;
        await operator.record("backup.restored", { ...details, paths_missed: missed.count });
        const { verdicts } = await operator.verifyAudit();
        const [rooms, orgs] = [operator.countRooms(), (await operator.listOrgs()).length];
        return { ...facts, orgs, rooms, audit_ok: verdicts.every(({ ok }) => ok) };
      }),
    );
    await showValue(
      found,
      options,
      ({ made_at, roomd, orgs, rooms, rooms_ended, guests_ended, is_member, missed, days_missing, audit_ok }) => [
        ...(guests_ended > 0 ? [`ended ${counted(guests_ended, "guest")} of the service that was here before`] : []),
        `${paths.data} is as it was at ${made_at} (roomd ${roomd}): ${counted(orgs, "organization")}, ${counted(rooms, "room")}`,
        ...rooms_ended.map((room) => `room ${room} was destroyed during the backup, and again after the restore`),
        ...missedLines(missed, "could not be made again"),
        ...days_missing.map((name) => `the backup lacks the closed day ${name} of the audit`),
        ...(is_member
          ? ["the backup is of a host of a cluster: run `roomd cluster rejoin` before you start the service"]
          : []),
        audit_ok ? "the audit is whole" : "the audit is broken: `roomd audit verify --host` shows the position",
      ],
    );
    setStatus(found.audit_ok ? EXIT.ok : EXIT.refused);
  });
}

/** File name of a closed day of the audit; checked because the backup's database is untrusted. */
const DAY_FILE = /^\d{4}-\d\d-\d\d(-\d+)?\.db$/;

/** Result of a restore: the backup, and the guests of the previous service. */
interface Restored extends BackupFacts {
  guests_ended: number;
  /** Names of rooms that ended while the backup was made. */
  rooms_ended: string[];
  /** Whether the backup is of a cluster member. */
  is_member: boolean;
  missed: Missed;
  /** Names of closed days of the audit that the backup's database lists and the backup lacks. */
  days_missing: string[];
}

/** Source of a backup, and its name in messages. */
interface Source {
  name: string;
  /** Opens the backup and passes its file descriptor to `work`. */
  reading<T>(work: (from: number) => Promise<T>): Promise<T>;
  /** Writes a closed day of the audit that is not part of the backup to the file `to`. False if the source does not have it. */
  fetchDay(day: { name: string; sha256: string }, to: string): Promise<boolean>;
}

function sourceOf(config: Config, file: string | undefined, url: string | undefined): Source {
  if ((file === undefined) === (url === undefined))
    throw new CliError("Name the file of the backup, or give --from s3://BUCKET/NAME.", EXIT.usage);
  return file === undefined ? inStore(config, String(url)) : inFile(file);
}

function inFile(name: string): Source {
  return {
    name,
    reading: async (work) => {
      const from = openBackup(name);
      try {
        return await work(from);
      } finally {
        if (from !== INPUT) closeSync(from);
      }
    },
    fetchDay: async () => false,
  };
}

function inStore(config: Config, name: string): Source {
  const object = readUrl(name);
  if (!object) throw new CliError(`${name} is not a URL of a backup, such as s3://BUCKET/NAME.`, EXIT.usage);
  const plan = requirePlan(config);
  return {
    name,
    reading: async (work) => {
      // Error of the download. It replaces the reader's error: a damaged backup may show only when its last piece is verified.
      let broken: unknown = null;
      const source = async function* () {
        try {
          yield* download(plan, object);
        } catch (error) {
          broken = error;
          throw error;
        }
      };
      try {
        return await writeInto(source(), work);
      } catch (error) {
        throw toldOf(broken ?? error);
      }
    },
    fetchDay: async (day, to) => {
      const hostId = readName(object.key.slice(object.key.lastIndexOf("/") + 1))?.host_id;
      if (hostId === undefined) return false;
      return await fetchDay(plan, { bucket: object.bucket, hostId, day, to }).catch((error: unknown) => {
        throw toldOf(error);
      });
    },
  };
}

async function restore(paths: Paths, source: Source, options: ConfigOption): Promise<Restored> {
  const { name: file, reading } = source;
  await requireNothing(paths, options);
  crossedDirectory(paths.data);
  const unlock = takeLocks(paths);
  try {
    rmSync(paths.backup, { recursive: true, force: true });
    mkdirSync(paths.backup, { mode: 0o700 });
    const missed = await reading((from) => unpackArchive(from, paths.backup, guestsOwn(paths))).catch(
      (error: unknown) => {
        if (error instanceof CliError) throw error;
        throw new CliError(`${file} cannot be unpacked: ${error instanceof Error ? error.message : String(error)}.`);
      },
    );
    const unpacked = makePaths({ data_dir: paths.backup, runtime_dir: paths.runtime });
    const [facts, end] = [readFacts<BackupFacts>(unpacked, BACKUP_FACTS), readFacts<BackupEnd>(unpacked, BACKUP_END)];
    if (!facts || !existsSync(unpacked.database)) {
      throw new CliError(`${file} is not a backup made by \`roomd backup\`.`);
    }
    if (!end) throw new CliError(`${file} is incomplete: its end is missing.`);
    const why = whyUnusable(unpacked.database);
    if (why !== null) throw new CliError(`${file} cannot be restored. ${why}`);
    const days_missing = await fetchDays(source, unpacked);
    const { settleRooms } = await import("../../domain/rooms/index.ts");
    const rooms_ended = await changeCopy(unpacked.database, (database) =>
      settleRooms(database, unpacked, end.rooms_ended),
    );
    const guests_ended = await endGuests(paths);
    const { renewIncarnation } = await import("../../cluster/member-file.ts");
    const is_member = renewIncarnation(unpacked.cluster);
    syncAll(unpacked.data);
    putInPlace(paths, unpacked);
    // After a power loss, the renames must not be missing while later acknowledged changes remain.
    for (const directory of [paths.data, dirname(paths.data)]) syncDirectory(directory);
    return { ...facts, guests_ended, rooms_ended, is_member, missed, days_missing };
  } finally {
    rmSync(paths.backup, { recursive: true, force: true });
    unlock();
  }
}

/**
 * Fetches closed days that the database names and the archive lacks. Returns the names of days that cannot be fetched: without them the
 * audit is broken.
 */
async function fetchDays(source: Source, unpacked: Paths): Promise<string[]> {
  const missing: string[] = [];
  if (isLink(unpacked.audit_days)) rmSync(unpacked.audit_days);
  mkdirSync(unpacked.audit_days, { recursive: true, mode: 0o700 });
  for (const { name, sha256, removed_at } of readDatabase(unpacked.database, closedFiles)) {
    const to = join(unpacked.audit_days, name);
    if (removed_at !== null || (DAY_FILE.test(name) && existsSync(to))) continue;
    if (!DAY_FILE.test(name) || !(await source.fetchDay({ name, sha256 }, to))) missing.push(name);
  }
  return missing;
}

/** A daemon still holds its runtime_dir after its data_dir was moved away. */
function takeLocks(paths: Paths): () => void {
  const unlockData = takeLock(paths.data_lock, "data_dir");
  if (!existsSync(paths.guests)) return unlockData;
  try {
    const unlockRuntime = takeLock(paths.daemon_lock, "runtime_dir");
    return () => [unlockRuntime, unlockData].forEach((unlock) => void unlock());
  } catch (error) {
    unlockData();
    throw error;
  }
}

/** Guests that kept running without a daemon use the drives of the former service: none may be adopted as a guest of the backup's. */
async function endGuests(paths: Paths): Promise<number> {
  const left = [...(await guestProcesses(paths.guests)).keys()];
  await Promise.all(left.map((sandboxId) => freeLeftovers(paths.sandbox(sandboxId))));
  return left.length;
}

/** Reads a file of the backup's own metadata; null if the backup has none. */
function readFacts<T>(unpacked: Paths, name: string): T | null {
  try {
    return JSON.parse(readFileSync(join(unpacked.data, name), "utf8")) as T;
  } catch {
    return null;
  }
}

/** A database without an organization is a leftover of `roomd template build`, and no obstacle. */
async function requireNothing(paths: Paths, options: ConfigOption): Promise<void> {
  const places = [paths.rooms, paths.retired];
  const isUsed = existsSync(paths.database) && (await withOperator(options, (on) => on.listOrgs())).length > 0;
  // Before their contents are checked: a drive directory with its own file system has a lost+found.
  if (!isUsed) places.forEach(requirePlace);
  if (!isUsed && !places.some((at) => existsSync(at) && readdirSync(at).length > 0)) return;
  throw new CliError({
    detail: `There is a service in ${paths.data} already.`,
    errors: [],
    hint: "Restore into another data_dir, or move that directory away first.",
  });
}

/** The backup's drives replace an empty directory by rename, which is impossible for a mount point or a link. */
function requirePlace(directory: string): void {
  const isMounted = isMountPoint(directory);
  if (!isMounted && !isLink(directory)) return;
  throw new CliError({
    detail: `${directory} is a ${isMounted ? "mount point" : "symbolic link"}, and no drives can be put in its place.`,
    errors: [],
    hint: `${isMounted ? "Unmount" : "Remove"} it first. ${ONE_FILE_SYSTEM}`,
  });
}

function openBackup(file: string): number {
  if (file === STANDARD_STREAM) return INPUT;
  try {
    return openSync(file, "r");
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${errnoOf(error) ?? String(error)}.`);
  }
}

/** Syncs the file system that contains a directory. */
function syncAll(directory: string): void {
  const opened = openSync(directory, "r");
  try {
    syncFileSystem(opened);
  } finally {
    closeSync(opened);
  }
}

/** Moves the files into data_dir; the database last, once all files that it references are in place and synced. */
function putInPlace(paths: Paths, unpacked: Paths): void {
  const others = readdirSync(unpacked.data).filter((name) => ![BACKUP_FACTS, BACKUP_END].includes(name));
  for (const name of others) {
    const [from, to] = [join(unpacked.data, name), join(paths.data, name)];
    if (from.startsWith(unpacked.database)) continue;
    // Drive data are never removed, whatever has been added to them since.
    if (guestsOwn(paths).includes(name) && existsSync(to)) rmdirSync(to);
    else rmSync(to, { recursive: true, force: true });
    renameSync(from, to);
  }
  for (const end of ["", "-wal", "-shm"]) rmSync(`${paths.database}${end}`, { force: true });
  syncDirectory(paths.data);
  renameSync(unpacked.database, paths.database);
}
