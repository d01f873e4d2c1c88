/** Owns what a COPY takes from the directory beside a Dockerfile, as a tar: files, directories and links as they are, less what .dockerignore names. */
import {
  createReadStream,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from "node:fs";
import { basename, join, posix, relative } from "node:path";
import { pipeline } from "node:stream/promises";
import dockerignore from "@balena/dockerignore";
import { type Pack, pack } from "tar-stream";
import { invalidRecipe } from "../recipe.ts";

const MOST_FILES = 200_000;

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

/** Throws validation_failed where a source is not there, or leads out of the context. */
export function takeOf(context: string, sources: readonly string[], look: Look): Taken {
  const root = realpathSync(context);
  const ignore = dockerignore({ ignorecase: false });
  if (existsSync(join(root, ".dockerignore"))) ignore.add(readFileSync(join(root, ".dockerignore"), "utf8"));
  const roots = sources.flatMap((source) => found(root, source));
  const entries: Entry[] = [];
  const add = (path: string, name: string) => {
    const inContext = relative(root, path);
    const isDirectory = lstatSync(path).isDirectory();
    const isIgnored = inContext !== "" && ignore.ignores(inContext);
    // What is below it may be named again by a line with "!".
    if (!isIgnored && name !== "") entries.push({ path, name });
    if (entries.length > MOST_FILES) throw invalidRecipe([`a COPY takes more than ${MOST_FILES} files`]);
    if (isDirectory) for (const each of readdirSync(path).sort()) add(join(path, each), posix.join(name, each));
  };
  for (const path of roots) add(path, lstatSync(path).isDirectory() ? "" : basename(path));
  const [first] = roots;
  const isOne = roots.length === 1 && first !== undefined && !lstatSync(first).isDirectory();
  if (isOne && entries.length === 0) throw invalidRecipe([`COPY ${sources[0]}: .dockerignore leaves it out`]);
  return { only: isOne ? basename(first) : null, tar: packed(entries, look) };
}

/** Nothing is opened before it is asked for. */
async function* packed(entries: readonly Entry[], look: Look): AsyncGenerator<Uint8Array> {
  const tar = pack();
  void fill(tar, entries, look).catch((error: Error) => tar.destroy(error));
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

async function fill(tar: Pack, entries: readonly Entry[], { owner, mode }: Look): Promise<void> {
  for (const { path, name } of entries) {
    const stat = lstatSync(path);
    const owned = owner === null ? { uid: 0, gid: 0 } : idsOf(owner);
    const common = { name, mtime: stat.mtime, ...owned };
    if (stat.isSymbolicLink()) tar.entry({ ...common, type: "symlink", linkname: readlinkSync(path) });
    else if (stat.isDirectory()) tar.entry({ ...common, type: "directory", mode: mode ?? stat.mode & 0o7777 });
    else if (stat.isFile()) {
      const header = { ...common, size: stat.size, mode: mode ?? stat.mode & 0o7777 };
      if (stat.size === 0) tar.entry(header, "");
      // A file that has grown meanwhile is taken as it was.
      else await pipeline(createReadStream(path, { end: stat.size - 1 }), tar.entry(header));
    } else throw invalidRecipe([`COPY ${name}: it is neither a file, a directory nor a link`]);
  }
  tar.finalize();
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
