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
  syncDirectory(unfinished);
  renameSync(unfinished, before_upgrade);
  syncDirectory(dirname(before_upgrade));
}

/** Nothing where there is none. By renaming: there is a database at any time, also where the disk is full. */
export function putDatabaseBack(paths: Places): void {
  const { database, before_upgrade } = paths;
  const kept = copyIn(before_upgrade, paths);
  if (!existsSync(kept)) return;
  for (const end of ["-wal", "-shm"]) rmSync(`${database}${end}`, { force: true });
  for (const end of FILES) if (existsSync(`${kept}${end}`)) renameSync(`${kept}${end}`, `${database}${end}`);
  syncDirectory(dirname(database));
}

export function forgetDatabase({ before_upgrade }: Pick<Places, "before_upgrade">): void {
  rmSync(before_upgrade, { recursive: true, force: true });
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
