/**
 * Files that COPY takes from the build context, as a tar: files, directories and links unchanged, except the ones ignored by .dockerignore.
 */
import type { Hash } from "node:crypto";
import { posix } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import dockerignore from "@balena/dockerignore";
import { type Header, type Pack, pack } from "tar-stream";
import { invalidRecipe } from "../recipe.ts";

/** Limit for all COPYs of a Dockerfile together, including ignored files. */
const MAX_FILES = 200_000;
export const IGNORE = ".dockerignore";

/** The entry at a path, links not followed. */
export interface Facts {
  type: "file" | "directory" | "symlink" | "other";
  /** The twelve permission bits. */
  mode: number;
  mtime: Date;
}

export interface OpenedFile {
  size: number;
  pieces(): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/** Build context of a Dockerfile, by paths relative to it; "" is the whole. */
export interface Beside {
  /** Content of its .dockerignore; "" if absent. */
  ignored: string;
  facts(path: string): Facts | null;
  /** The names in a directory. */
  names(path: string): string[];
  linkOf(path: string): string;
  /** Paths that match a pattern. */
  matches(pattern: string): string[];
  /** Whether a path is inside the context, with links on the way resolved. */
  holds(path: string): boolean;
  /** All files read during `work` are from the original directory. */
  reading<T>(work: (open: (path: string) => OpenedFile) => Promise<T>): Promise<T>;
}

export interface ContextSelection {
  /** For a single source that is not a directory: its name; else null. */
  only: string | null;
  /** Names are relative to the destination. `hash` is updated with the whole content except the files' times. */
  tar(hash: Hash): AsyncIterable<Uint8Array>;
}

interface Entry {
  path: string;
  /** In the tar. */
  name: string;
}

export interface Look {
  /** Names or numbers, valid in the guest. */
  owner: { user: string; group: string } | null;
  mode: number | null;
}

/** The build context from which the COPYs of one Dockerfile take files. */
export class Context {
  readonly #beside: Beside;
  readonly #ignores: (path: string) => boolean;
  #files: number;

  /** `files` is the number of files counted before. */
  constructor(buildContext: Beside, files = 0) {
    const ignore = dockerignore({ ignorecase: false }).add(buildContext.ignored);
    this.#beside = buildContext;
    this.#ignores = (path) => ignore.ignores(path);
    this.#files = files;
  }

  /** Throws validation_failed if a source is missing, or leads out of the context. */
  take(sources: readonly string[], look: Look): ContextSelection {
    const buildContext = this.#beside;
    const isDirectory = (path: string) => buildContext.facts(path)?.type === "directory";
    const roots = sources.flatMap((source) => this.#found(source));
    const entries: Entry[] = [];
    const add = (path: string, name: string) => {
      // An ignored directory may have content that a line with "!" includes again.
      if (name !== "" && !this.#ignores(path)) entries.push({ path, name });
      if (++this.#files > MAX_FILES) throw invalidRecipe([`its COPYs take more than ${MAX_FILES} files`]);
      if (isDirectory(path))
        for (const each of buildContext.names(path)) add(posix.join(path, each), posix.join(name, each));
    };
    for (const path of roots) add(path, isDirectory(path) ? "" : posix.basename(path));
    const [first] = roots;
    const isOne = roots.length === 1 && first !== undefined && !isDirectory(first);
    if (isOne && entries.length === 0) throw invalidRecipe([`COPY ${sources[0]}: .dockerignore leaves it out`]);
    return { only: isOne ? posix.basename(first) : null, tar: (hash) => packed(buildContext, entries, look, hash) };
  }

  /** Paths that match a pattern; they are inside the context whatever the pattern. */
  #found(source: string): string[] {
    const within = posix.resolve("/", source).slice(1);
    const isPattern = /[*?[]/.test(within);
    const matches = isPattern ? this.#beside.matches(within) : this.#beside.facts(within) === null ? [] : [within];
    if (matches.length === 0)
      throw invalidRecipe([`COPY ${source}: there is no such file in the Dockerfile's directory`]);
    if (!matches.every((path) => this.#beside.holds(path)))
      throw invalidRecipe([`COPY ${source}: it leads out of the context`]);
    return matches;
  }
}

/** Opens files only when the tar is read. */
async function* packed(
  buildContext: Beside,
  entries: readonly Entry[],
  look: Look,
  hash: Hash,
): AsyncGenerator<Uint8Array> {
  const tar = pack();
  void buildContext
    .reading((open) => fill(tar, buildContext, open, entries, look, hash))
    .catch((error: Error) => tar.destroy(error));
  yield* tar as AsyncIterable<Uint8Array>;
}

async function fill(
  tar: Pack,
  buildContext: Beside,
  open: (path: string) => OpenedFile,
  entries: readonly Entry[],
  { owner, mode }: Look,
  hash: Hash,
): Promise<void> {
  const put = (header: Partial<Header> & { name: string }, content?: string) => {
    const { mtime: _, ...rest } = header;
    hash.update(`${JSON.stringify(rest)}\n`);
    return content === undefined ? tar.entry(header) : tar.entry(header, content);
  };
  for (const { path, name } of entries) {
    const facts = buildContext.facts(path);
    if (facts === null) throw invalidRecipe([`COPY ${name}: it has been removed`]);
    const owned = owner === null ? { uid: 0, gid: 0 } : idsOf(owner);
    const common = { name, mtime: facts.mtime, ...owned };
    if (facts.type === "symlink") put({ ...common, type: "symlink", linkname: buildContext.linkOf(path) });
    else if (facts.type === "directory") put({ ...common, type: "directory", mode: mode ?? facts.mode });
    else if (facts.type === "file") {
      const file = open(path);
      try {
        const { size } = file;
        const header = { ...common, size, mode: mode ?? facts.mode };
        if (size === 0) put(header, "");
        else await pipeline(Readable.from(hashed(file.pieces(), hash)), put(header));
      } finally {
        await file.close();
      }
    } else throw invalidRecipe([`COPY ${name}: it is neither a file, a directory nor a link`]);
  }
  tar.finalize();
}

async function* hashed(pieces: AsyncIterable<Uint8Array>, hash: Hash): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    hash.update(piece);
    yield piece;
  }
}

/** Names are resolved in the guest. */
function idsOf({ user, group }: { user: string; group: string }) {
  const id = (name: string) => (/^\d+$/.test(name) ? Number(name) : 0);
  return {
    uid: id(user),
    gid: id(group),
    uname: /^\d+$/.test(user) ? "" : user,
    gname: /^\d+$/.test(group) ? "" : group,
  };
}
