/**
 * Owns the copy of the database by which an upgrade can go back. It is good until a service is ready on the present one: what is accepted
 * from then on is in that one alone. So the service itself does away with it, whatever became of the upgrade.
 */
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { syncDirectory } from "../core/kept-file.ts";
import type { Paths } from "../core/paths.ts";
import { wouldMigrate } from "../db/copy.ts";
import { writeWholeLog } from "../db/log-sync.ts";

type Places = Pick<Paths, "database" | "before_upgrade">;

/** A database and what SQLite has beside it. */
const FILES = ["", "-wal"];

const copyIn = (directory: string, { database }: Places) => join(directory, basename(database));

/** Where this roomd would change it. The daemon that writes it has been stopped. */
export function keepDatabase(paths: Places): void {
  const { database, before_upgrade } = paths;
  // What an interrupted upgrade has left is older, and the one to keep: no service was ready since.
  if (existsSync(copyIn(before_upgrade, paths)) || !wouldMigrate(database)) return;
  const unfinished = `${before_upgrade}.new`;
  for (const former of [unfinished, before_upgrade]) rmSync(former, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  for (const end of FILES)
    if (existsSync(`${database}${end}`)) copy(`${database}${end}`, `${copyIn(unfinished, paths)}${end}`);
  // One file can be put back by one rename.
  foldLog(copyIn(unfinished, paths));
  syncDirectory(unfinished);
  renameSync(unfinished, before_upgrade);
  syncDirectory(dirname(before_upgrade));
}

/**
 * Does nothing without a copy. One rename moves the copy, so that a loss of power leaves either the present database or the copy, whole.
 * Throws if an earlier roomd has copied a log, too, and the disk is too full to write that into the copy.
 */
export function putDatabaseBack(paths: Places): void {
  const { database, before_upgrade } = paths;
  const kept = copyIn(before_upgrade, paths);
  if (!existsSync(kept)) return;
  foldLog(kept);
  try {
    writeWholeLog(database, { afterFailure: false });
  } catch {
    // Whatever is wrong with the present database, the copy replaces it.
  }
  // The copy's own pages must not be read with the log of the present database.
  for (const end of ["-wal", "-shm"]) rmSync(`${database}${end}`, { force: true });
  syncDirectory(dirname(database));
  renameSync(kept, database);
  for (const directory of [before_upgrade, dirname(database)]) syncDirectory(directory);
}

export function forgetDatabase({ before_upgrade }: Pick<Places, "before_upgrade">): void {
  rmSync(before_upgrade, { recursive: true, force: true });
}

/** Writes the log of a copy into it, on disk. */
function foldLog(file: string): void {
  if (!existsSync(`${file}-wal`)) return;
  writeWholeLog(file, { afterFailure: true });
  if (existsSync(`${file}-wal`)) throw new Error(`the log of ${file} could not be written into it: is the disk full?`);
}

/** It is on disk before it has its name: one that is there is whole. */
function copy(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  const file = openSync(to, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
