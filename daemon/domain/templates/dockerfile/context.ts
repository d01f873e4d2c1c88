/**
 * Owns what COPYs take from the directory beside a Dockerfile, as a tar: files, directories and links as they are, less what .dockerignore names.
 * Whoever owns that directory may change it meanwhile: what is read is beneath it in any case.
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { basename, join, posix, relative } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import dockerignore from "@balena/dockerignore";
import { type Pack, pack } from "tar-stream";
import { Beneath } from "../../../host/files/beneath.ts";
import { CHUNK_BYTES, type OpenFile } from "../../../host/files/open-file.ts";
import { toRaw } from "../../../host/files/raw-path.ts";
import { invalidRecipe } from "../recipe.ts";

/** Of all COPYs of a Dockerfile together, also those that are left out. */
const MOST_FILES = 200_000;
const IGNORE = ".dockerignore";
const MOST_IGNORE_BYTES = 1024 * 1024;

export interface Taken {
  /** Where there is one source and it is no directory: its name. */
  only: string | null;
  /** Names are relative to where they go. */
  tar: AsyncIterable<Uint8Array>;
}

interface Entry {
  path: string;
  /** In the tar. */
  name: string;
}

export interface Look {
  /** Names, or numbers; of the guest. */
  owner: { user: string; group: string } | null;
  mode: number | null;
}

/** A directory that COPYs take from. */
export interface Context {
  root: string;
  /** Which directory it was. */
  inode: bigint;
  ignores(path: string): boolean;
  /** That COPYs have come by. */
  files: number;
}

/** Throws validation_failed where there is none. */
export function openContext(directory: string): Context {
  try {
    const root = realpathSync(directory);
    const ignore = dockerignore({ ignorecase: false }).add(ignoredIn(root));
    return { root, inode: inodeOf(root), ignores: (path) => ignore.ignores(path), files: 0 };
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    throw invalidRecipe([`context: ${directory} cannot be read: ${error.message}`]);
  }
}

const inodeOf = (directory: string): bigint => statSync(directory, { bigint: true }).ino;

function ignoredIn(root: string): string {
  const path = join(root, IGNORE);
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (!there) return "";
  if (!there.isFile() || there.size > MOST_IGNORE_BYTES)
    throw invalidRecipe([`${IGNORE}: it is no file, or too large`]);
  return readFileSync(path, "utf8");
}

/** Throws validation_failed where a source is not there, or leads out of the context. */
export function takeOf(context: Context, sources: readonly string[], look: Look): Taken {
  const { root } = context;
  const roots = sources.flatMap((source) => found(root, source));
  const entries: Entry[] = [];
  const add = (path: string, name: string) => {
    const inContext = relative(root, path);
    const isDirectory = lstatSync(path).isDirectory();
    const isIgnored = inContext !== "" && context.ignores(inContext);
    // What is below it may be named again by a line with "!".
    if (!isIgnored && name !== "") entries.push({ path, name });
    if (++context.files > MOST_FILES) throw invalidRecipe([`its COPYs take more than ${MOST_FILES} files`]);
    if (isDirectory) for (const each of readdirSync(path).sort()) add(join(path, each), posix.join(name, each));
  };
  for (const path of roots) add(path, lstatSync(path).isDirectory() ? "" : basename(path));
  const [first] = roots;
  const isOne = roots.length === 1 && first !== undefined && !lstatSync(first).isDirectory();
  if (isOne && entries.length === 0) throw invalidRecipe([`COPY ${sources[0]}: .dockerignore leaves it out`]);
  return { only: isOne ? basename(first) : null, tar: packed(context, entries, look) };
}

/** Nothing is opened before it is asked for. */
async function* packed(context: Context, entries: readonly Entry[], look: Look): AsyncGenerator<Uint8Array> {
  const tar = pack();
  void fill(tar, context, entries, look).catch((error: Error) => tar.destroy(error));
  yield* tar as AsyncIterable<Uint8Array>;
}

/** What a pattern names, which is beneath the context whatever it says. */
function found(root: string, source: string): string[] {
  const within = posix.resolve("/", source).slice(1);
  const matches =
    within === ""
      ? [root]
      : /[*?[]/.test(within)
        ? [...new Bun.Glob(within).scanSync({ cwd: root, dot: true, onlyFiles: false })]
            .map((name) => join(root, name))
            .sort()
        : [join(root, within)].filter((path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined);
  if (matches.length === 0) throw invalidRecipe([`COPY ${source}: there is no such file beside the Dockerfile`]);
  // A directory on the way may be a link to elsewhere.
  for (const path of matches) {
    const parent = path === root ? root : realpathSync(join(path, ".."));
    if (parent !== root && !parent.startsWith(`${root}/`))
      throw invalidRecipe([`COPY ${source}: it leads out of the context`]);
  }
  return matches;
}

async function fill(
  tar: Pack,
  { root, inode }: Context,
  entries: readonly Entry[],
  { owner, mode }: Look,
): Promise<void> {
  using beneath = Beneath.open(root);
  if (beneath.inode !== inode) throw invalidRecipe([`context: ${root} is another directory by now`]);
  for (const { path, name } of entries) {
    const stat = lstatSync(path);
    const owned = owner === null ? { uid: 0, gid: 0 } : idsOf(owner);
    const common = { name, mtime: stat.mtime, ...owned };
    if (stat.isSymbolicLink()) tar.entry({ ...common, type: "symlink", linkname: readlinkSync(path) });
    else if (stat.isDirectory()) tar.entry({ ...common, type: "directory", mode: mode ?? stat.mode & 0o7777 });
    else if (stat.isFile()) {
      await using file = beneath.file(toRaw(relative(root, path)), "read");
      const { size_bytes: size } = file.facts;
      const header = { ...common, size, mode: mode ?? stat.mode & 0o7777 };
      if (size === 0) tar.entry(header, "");
      else await pipeline(Readable.from(piecesOf(file, size)), tar.entry(header));
    } else throw invalidRecipe([`COPY ${name}: it is neither a file, a directory nor a link`]);
  }
  tar.finalize();
}

/** Its first so many bytes: one that has grown meanwhile is taken as it was. */
async function* piecesOf(file: OpenFile, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < size; ) {
    const piece = await file.read(at, Math.min(CHUNK_BYTES, size - at));
    if (piece.byteLength === 0) throw invalidRecipe(["COPY: a file became shorter while it was read"]);
    at += piece.byteLength;
    yield piece;
  }
}

/** Names are the guest's to know. */
function idsOf({ user, group }: { user: string; group: string }) {
  const id = (name: string) => (/^\d+$/.test(name) ? Number(name) : 0);
  return {
    uid: id(user),
    gid: id(group),
    uname: /^\d+$/.test(user) ? "" : user,
    gname: /^\d+$/.test(group) ? "" : group,
  };
}
