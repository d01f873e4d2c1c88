/**
 * A directory of this host as the build context of a Dockerfile. Its owner may change it during the build: reads stay beneath it in any
 * case.
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { Beneath } from "../../../host/files/beneath.ts";
import { CHUNK_BYTES, type OpenFile } from "../../../host/files/open-file.ts";
import { toRaw } from "../../../host/files/raw-path.ts";
import { invalidRecipe } from "../recipe.ts";
import { type Beside, type Facts, IGNORE } from "./context.ts";

const MAX_IGNORE_BYTES = 1024 * 1024;

/** Throws validation_failed if the directory does not exist. */
export function directoryBeside(directory: string): Beside {
  try {
    return besideOf(realpathSync(directory));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && "syscall" in error)) throw error;
    throw invalidRecipe([`context: the build context directory ${directory} cannot be read: ${error.message}`]);
  }
}

const inodeOf = (directory: string): bigint => statSync(directory, { bigint: true }).ino;

function besideOf(root: string): Beside {
  const inode = inodeOf(root);
  const at = (path: string) => join(root, path);
  return {
    ignored: ignoredIn(root),
    facts: (path) => {
      const there = lstatSync(at(path), { throwIfNoEntry: false });
      return there ? { type: typeOf(there), mode: there.mode & 0o7777, mtime: there.mtime } : null;
    },
    names: (path) => readdirSync(at(path)).sort(),
    linkOf: (path) => readlinkSync(at(path)),
    matches: (pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root, dot: true, onlyFiles: false })].sort(),
    holds: (path) => {
      // A directory on the path may be a link out of the root.
      const parent = path === "" ? root : realpathSync(join(root, path, ".."));
      return parent === root || parent.startsWith(`${root}/`);
    },
    reading: async (work) => {
      using beneath = Beneath.open(root);
      if (beneath.inode !== inode)
        throw invalidRecipe([`context: the build context directory ${root} has been replaced by another directory`]);
      return await work((path) => {
        const file = beneath.file(toRaw(path), "read");
        const { size_bytes: size } = file.facts;
        return { size, pieces: () => piecesOf(file, size), close: () => file[Symbol.asyncDispose]() };
      });
    },
  };
}

function typeOf(there: Stats): Facts["type"] {
  if (there.isSymbolicLink()) return "symlink";
  return there.isDirectory() ? "directory" : there.isFile() ? "file" : "other";
}

function ignoredIn(root: string): string {
  const path = join(root, IGNORE);
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (!there) return "";
  if (!there.isFile() || there.size > MAX_IGNORE_BYTES)
    throw invalidRecipe([`${IGNORE}: it is not a file, or too large`]);
  return readFileSync(path, "utf8");
}

/** The first `size` bytes: a file that has grown in the meantime is read up to its earlier size. */
async function* piecesOf(file: OpenFile, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size; ) {
    const piece = await file.read(at, Math.min(CHUNK_BYTES, size - at));
    if (piece.byteLength === 0) throw invalidRecipe(["COPY: a file became shorter while it was read"]);
    at += piece.byteLength;
    yield piece;
  }
}
