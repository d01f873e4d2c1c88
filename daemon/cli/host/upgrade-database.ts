/**
 * The copy of the database with which an upgrade can roll back. It is valid until a service is ready on the current database: calls
 * accepted after that are in the current one alone. So the service itself deletes the copy, whatever the outcome of the upgrade.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { syncDirectory } from "../../core/config/durable-file.ts";
import type { Paths } from "../../core/config/paths.ts";
import { wouldMigrate } from "../../db/copy.ts";
import { writeWholeLog } from "../../db/log-sync.ts";
import { type CopyBounds, copyDatabase } from "./database-copy.ts";

type Places = Pick<Paths, "database" | "before_upgrade">;

const copyIn = (directory: string, { database }: Places) => join(directory, basename(database));

/** Copies the database if this version of roomd would migrate it. Throws errors of copyDatabase, for example if there is no space. */
export async function keepDatabase(paths: Places, bounds: CopyBounds): Promise<void> {
  const { database, before_upgrade } = paths;
  // The copy of an interrupted upgrade is older, and the one to keep: no service was ready since.
  if (existsSync(copyIn(before_upgrade, paths)) || !wouldMigrate(database)) return;
  const unfinished = `${before_upgrade}.new`;
  for (const former of [unfinished, before_upgrade]) rmSync(former, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  try {
    // A single file can be restored by one rename.
    await copyDatabase(database, copyIn(unfinished, paths), bounds);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    throw error;
  }
  syncDirectory(unfinished);
  renameSync(unfinished, before_upgrade);
  syncDirectory(dirname(before_upgrade));
}

/**
 * Restores the copy; does nothing without one. Uses a single rename, so that a power loss leaves either the present database or the copy
 * intact.
 */
export function putDatabaseBack(paths: Places): void {
  const { database, before_upgrade } = paths;
  const kept = copyIn(before_upgrade, paths);
  if (!existsSync(kept)) return;
  try {
    writeWholeLog(database, { afterFailure: false });
  } catch {
    // The present database may be broken: the copy replaces it in any case.
  }
  // The restored copy must not be read with the log of the replaced database.
  for (const end of ["-wal", "-shm"]) rmSync(`${database}${end}`, { force: true });
  syncDirectory(dirname(database));
  renameSync(kept, database);
  for (const directory of [before_upgrade, dirname(database)]) syncDirectory(directory);
}

export function forgetDatabase({ before_upgrade }: Pick<Places, "before_upgrade">): void {
  rmSync(before_upgrade, { recursive: true, force: true });
}
