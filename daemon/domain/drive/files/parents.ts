/** Opens the parent directories of a path to write, and makes the missing ones. */
import { errnoOf } from "../../../core/service-error.ts";
import type { Beneath } from "../../../host/files/beneath.ts";
import type { GuestOwner } from "../../../host/files/open-file.ts";
import type { RawPath } from "../../../host/files/raw-path.ts";
import { DIRECTORY_MODE } from "../entry.ts";
import { meaning } from "../errors.ts";
import type { DrivePath } from "../path.ts";
import type { Drive, OpenDrive } from "../verb.ts";

const ON_THE_WAY = {
  ENOENT: ["invalid_path", "A link in the path points to nothing."],
  ENOTDIR: ["invalid_path", "A part of the path is not a directory."],
} as const;

/**
 * The directory at `path`; missing parts are made, durably, and not while the drive is quiesced. Throws invalid_path, path_escapes_drive.
 */
export function openOrMake(
  { stillness }: Pick<Drive, "stillness">,
  { room, root }: Pick<OpenDrive, "room" | "root">,
  path: DrivePath,
  made: NewDirectory = {},
): Promise<OpenedParent> {
  return meaning(ON_THE_WAY, async () => {
    const existing = openExisting(root, path);
    if (existing) return { directory: existing, created: false };
    return await stillness.passing({ room, root }, () => makeEach(root, path, made));
  });
}

/** Owner and mode of a directory that has to be created. */
interface NewDirectory {
  /** Mode of the last directory; directories above it get the default mode. */
  mode?: number;
  owner?: GuestOwner | undefined;
}

export interface OpenedParent {
  /** The caller closes it. */
  directory: Beneath;
  /** Whether this call created the last directory of the path. */
  created: boolean;
}

function openExisting(root: Beneath, path: DrivePath): Beneath | null {
  try {
    return root.directory(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}

async function makeEach(
  root: Beneath,
  path: DrivePath,
  { mode = DIRECTORY_MODE, owner }: NewDirectory,
): Promise<OpenedParent> {
  const names = path.split("/") as RawPath[];
  let above = root.directory("." as RawPath);
  let created = false;
  for (const [index, name] of names.entries()) {
    // Resolved from the root each time: a link on the path may lead up and elsewhere on the drive.
    const upTo = names.slice(0, index + 1).join("/") as DrivePath;
    using parent = above;
    let next = openExisting(root, upTo);
    created = next === null;
    if (!next) {
      await makeOne(parent, name, index === names.length - 1 ? mode : DIRECTORY_MODE, owner);
      next = root.directory(upTo);
    }
    above = next;
  }
  return { directory: above, created };
}

async function makeOne(parent: Beneath, name: RawPath, mode: number, owner: GuestOwner | undefined): Promise<void> {
  try {
    await parent.makeDirectory(name, mode, owner);
  } catch (error) {
    // Made concurrently by another writer, or a link of that name points to nothing; the open that follows shows which.
    if (errnoOf(error) !== "EEXIST") throw error;
  }
  await parent.sync();
}
