/** Owns what COPYs take from what is beside a Dockerfile, as a tar: files, directories and links as they are, less what .dockerignore names. */
import type { Hash } from "node:crypto";
import { posix } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import dockerignore from "@balena/dockerignore";
import { type Header, type Pack, pack } from "tar-stream";
import { invalidRecipe } from "../recipe.ts";

/** Of all COPYs of a Dockerfile together, also those that are left out. */
const MOST_FILES = 200_000;
export const IGNORE = ".dockerignore";

/** What is there at a path, links not followed. */
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

/** What is beside a Dockerfile, by paths from there; "" is the whole. */
export interface Beside {
  /** Of its .dockerignore; "" where there is none. */
  ignored: string;
  facts(path: string): Facts | null;
  /** The names in a directory. */
  names(path: string): string[];
  linkOf(path: string): string;
  /** What a pattern names. */
  matches(pattern: string): string[];
  /** Whether a path lies in it, whatever links are on the way. */
  holds(path: string): boolean;
  /** All files that are read while `work` does are of what it was. */
  reading<T>(work: (open: (path: string) => OpenedFile) => Promise<T>): Promise<T>;
}

export interface Taken {
  /** Where there is one source and it is no directory: its name. */
  only: string | null;
  /** Names are relative to where they go. `hash` is given all that it comes to but the times of files. */
  tar(hash: Hash): AsyncIterable<Uint8Array>;
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

/** What the COPYs of one Dockerfile take from. */
export class Context {
  readonly #beside: Beside;
  readonly #ignores: (path: string) => boolean;
  #files: number;

  /** `files` is how many they have come by. */
  constructor(beside: Beside, files = 0) {
    const ignore = dockerignore({ ignorecase: false }).add(beside.ignored);
    this.#beside = beside;
    this.#ignores = (path) => ignore.ignores(path);
    this.#files = files;
  }

  /** Throws validation_failed where a source is not there, or leads out of it. */
  take(sources: readonly string[], look: Look): Taken {
    const beside = this.#beside;
    const isDirectory = (path: string) => beside.facts(path)?.type === "directory";
    const roots = sources.flatMap((source) => this.#found(source));
    const entries: Entry[] = [];
    const add = (path: string, name: string) => {
      // What is below it may be named again by a line with "!".
      if (name !== "" && !this.#ignores(path)) entries.push({ path, name });
      if (++this.#files > MOST_FILES) throw invalidRecipe([`its COPYs take more than ${MOST_FILES} files`]);
      if (isDirectory(path)) for (const each of beside.names(path)) add(posix.join(path, each), posix.join(name, each));
    };
    for (const path of roots) add(path, isDirectory(path) ? "" : posix.basename(path));
    const [first] = roots;
    const isOne = roots.length === 1 && first !== undefined && !isDirectory(first);
    if (isOne && entries.length === 0) throw invalidRecipe([`COPY ${sources[0]}: .dockerignore leaves it out`]);
    return { only: isOne ? posix.basename(first) : null, tar: (hash) => packed(beside, entries, look, hash) };
  }

  /** What a pattern names, which is beneath the context whatever it says. */
  #found(source: string): string[] {
    const within = posix.resolve("/", source).slice(1);
    const isPattern = /[*?[]/.test(within);
    const matches = isPattern ? this.#beside.matches(within) : this.#beside.facts(within) === null ? [] : [within];
    if (matches.length === 0) throw invalidRecipe([`COPY ${source}: there is no such file beside the Dockerfile`]);
    if (!matches.every((path) => this.#beside.holds(path)))
      throw invalidRecipe([`COPY ${source}: it leads out of the context`]);
    return matches;
  }
}

/** Nothing is opened before it is asked for. */
async function* packed(beside: Beside, entries: readonly Entry[], look: Look, hash: Hash): AsyncGenerator<Uint8Array> {
  const tar = pack();
  void beside
    .reading((open) => fill(tar, beside, open, entries, look, hash))
    .catch((error: Error) => tar.destroy(error));
  yield* tar as AsyncIterable<Uint8Array>;
}

async function fill(
  tar: Pack,
  beside: Beside,
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
    const facts = beside.facts(path);
    if (facts === null) throw invalidRecipe([`COPY ${name}: it is gone by now`]);
    const owned = owner === null ? { uid: 0, gid: 0 } : idsOf(owner);
    const common = { name, mtime: facts.mtime, ...owned };
    if (facts.type === "symlink") put({ ...common, type: "symlink", linkname: beside.linkOf(path) });
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
