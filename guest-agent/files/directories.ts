/** Creation of directories, with their parents. */
import { constants } from "node:fs";
import { mkdir, open, stat } from "node:fs/promises";
import { errnoOf, FileError } from "./file-error.ts";
import type { Owner } from "./owner.ts";
import { parentOf } from "./path.ts";

const DIRECTORY_MODE = 0o755;
const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/** Returns whether the last directory is new. Existing ones stay as they are; links to directories are followed. */
export async function makeDirectories(path: Buffer, owner: Owner, mode = DIRECTORY_MODE): Promise<boolean> {
  try {
    if (!(await stat(path)).isDirectory()) throw new FileError("ENOTDIR");
    return false;
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
  const above = parentOf(path);
  // The root always exists.
  if (above.byteLength < path.byteLength) await makeDirectories(above, owner);
  try {
    await mkdir(path, 0o700);
  } catch (error) {
    // A dangling link has this name, or another call has created the directory.
    if (errnoOf(error) !== "EEXIST" || !(await stat(path)).isDirectory()) throw error;
    return false;
  }
  // By descriptor: a user of the guest may replace the new directory with a link to a file of root.
  const made = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    await made.chown(owner.uid, owner.gid);
    await made.chmod(mode);
  } finally {
    await made.close();
  }
  return true;
}
