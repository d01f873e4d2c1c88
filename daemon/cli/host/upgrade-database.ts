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

/** If this roomd would change it. Throws errors of copyDatabase, as without space. */
export async function keepDatabase(paths: Places, bounds: CopyBounds): Promise<void> {
  const { database, before_upgrade } = paths;
  // The copy of an interrupted upgrade is older, and the one to keep: no service was ready since.
  if (existsSync(copyIn(before_upgrade, paths)) || !wouldMigrate(database)) return;
  const unfinished = `${before_upgrade}.new`;
  for (const former of [unfinished, before_upgrade]) rmSync(former, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  try {
    // One file can be put back by one rename.
    await copyDatabase(database, copyIn(unfinished, paths), bounds);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    throw error;
  }
  syncDirectory(unfinished);
  renameSync(unfinished, before_upgrade);
  syncDirectory(dirname(before_upgrade));
}

/** Does nothing without a copy. One rename moves the copy, so that a loss of power leaves either the present database or the copy, whole. */
export function putDatabaseBack(paths: Places): void {
  const { database, before_upgrade } = paths;
  const kept = copyIn(before_upgrade, paths);
  if (!existsSync(kept)) return;
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
