/** Local files as a tree. Names may come from a hostile sandbox: nothing is written through a symbolic link below the destination. */
import { lstat, mkdir, readdir, readlink, rm, stat, symlink } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { errnoOf } from "../../../../core/service-error.ts";
import { CliError } from "../../../kit/cli-error.ts";
import { localFile } from "../../../kit/local-file.ts";
import { saveAnswer } from "../../../kit/save-answer.ts";
import { PERMISSIONS, type Tree, type TreeEntry } from "./tree.ts";

export const LOCAL_TREE: Tree = {
  isRemote: false,
  spell: (path) => path,
  join: (directory, below) => join(directory, ...below.split("/")),
  stat: async (path) => {
    const facts = await orNull(path, stat(path));
    return facts && { type: typeOf(facts), mode: facts.mode };
  },
  list: async function* (directory) {
    for await (const path of below(directory)) {
      const facts = await checked(path, lstat(path));
      const type = typeOf(facts);
      yield {
        path: relative(directory, path).split(sep).join("/"),
        type,
        mode: facts.mode,
        target: type === "symlink" ? await checked(path, readlink(path)) : undefined,
      };
    }
  },
  open: async (path) => {
    const blob = await localFile(path);
    return { blob, size: blob.size, stream: blob.stream() as unknown as AsyncIterable<Uint8Array>, close: () => {} };
  },
  write: async (path, content, { mode, overwrite, followLink }) => {
    const there = await orNull(path, lstat(path));
    if (there && overwrite === false) throw new CliError(`${path} already exists.`);
    if (there?.isSymbolicLink() && !followLink) await checked(path, rm(path));
    return await saveAnswer(content, path, () => {}, mode === undefined ? undefined : mode & PERMISSIONS);
  },
  mkdir: async (path, { mode, followLink }) => {
    const there = await orNull(path, followLink ? stat(path) : lstat(path));
    if (there?.isDirectory()) return;
    if (there) throw new CliError(`${path} exists and is ${there.isSymbolicLink() ? "a link" : "no directory"}.`);
    await checked(path, mkdir(path, { recursive: followLink, mode: mode === undefined ? 0o777 : mode & PERMISSIONS }));
  },
  link: async (path, target) => {
    const there = await orNull(path, lstat(path));
    if (there?.isSymbolicLink()) await checked(path, rm(path));
    await checked(path, symlink(target, path));
  },
};

async function* below(directory: string): AsyncGenerator<string> {
  for (const each of await checked(directory, readdir(directory, { withFileTypes: true }))) {
    const path = join(directory, each.name);
    yield path;
    if (each.isDirectory()) yield* below(path);
  }
}

type Facts = Awaited<ReturnType<typeof lstat>>;

function typeOf(facts: Facts): TreeEntry["type"] {
  if (facts.isFile()) return "file";
  if (facts.isDirectory()) return "directory";
  return facts.isSymbolicLink() ? "symlink" : "other";
}

async function orNull<T>(path: string, found: Promise<T>): Promise<T | null> {
  const none = found.catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  });
  return await checked(path, none);
}

/** Throws CliError. */
async function checked<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw new CliError(`${path}: ${errnoOf(error) ?? String(error)}.`);
  }
}
