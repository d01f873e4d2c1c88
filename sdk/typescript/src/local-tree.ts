/** Copies directories between this machine and a sandbox: files with their modes, links as links; never writes through a link. */
import { createWriteStream, openAsBlob } from "node:fs";
import { chmod, lstat, mkdir, readdir, readlink, symlink, unlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { RoomdError } from "./errors.ts";
import type { SandboxFileEntry } from "./generated/schemas.ts";
import type { FileBody } from "./transport.ts";

const AT_ONCE = 8;
const PERMISSIONS = 0o777;

/** The operations on a sandbox's files that a copy needs. */
interface Tree {
  write(path: string, data: FileBody, options: Options & { mode: string }): Promise<unknown>;
  mkdir(path: string, options: Options): Promise<void>;
  list(path: string, options: Options & { recursive: boolean }): AsyncIterable<SandboxFileEntry>;
  open(path: string, options: Options): Promise<{ stream: AsyncIterable<Uint8Array>; close(): void }>;
}

interface Options {
  owner?: string;
  signal?: AbortSignal;
}

const modeOf = (mode: number) => (mode & PERMISSIONS).toString(8).padStart(4, "0");

/** Links are left out: the interface cannot create them. */
export async function uploadDirectory(files: Tree, local: string, path: string, options: Options): Promise<void> {
  await files.mkdir(path, options);
  await each(await readdir(local), async (name) => {
    const [from, to] = [join(local, name), `${path === "/" ? "" : path}/${name}`];
    const facts = await lstat(from);
    if (facts.isDirectory()) await uploadDirectory(files, from, to, options);
    else if (facts.isFile()) await files.write(to, await openAsBlob(from), { ...options, mode: modeOf(facts.mode) });
  });
}

export async function downloadDirectory(files: Tree, path: string, local: string, options: Options): Promise<void> {
  await mkdir(local, { recursive: true });
  const top = resolve(local);
  const above = path.replace(/\/+$/, "").length + 1;
  const found: SandboxFileEntry[] = [];
  for await (const entry of files.list(path, { ...options, recursive: true })) {
    if (entry.path_b64 !== undefined) throw new RoomdError(`${entry.path} has a name that is not UTF-8.`);
    found.push(entry);
  }
  const placeOf = (entry: string) => {
    const place = resolve(top, entry.slice(above));
    // The names come from the sandbox and are untrusted.
    if (!place.startsWith(`${top}/`)) throw new RoomdError(`${entry} leads out of ${local}.`);
    return place;
  };
  // Links are created last, so that no file is written through one.
  for (const { path: at, type } of found) {
    if (type !== "directory") continue;
    await refuseLinks(top, placeOf(at));
    await mkdir(placeOf(at), { recursive: true });
  }
  await each(
    found.filter(({ type }) => type === "file"),
    async ({ path: at, mode }) => {
      const place = placeOf(at);
      await refuseLinks(top, dirname(place));
      if (await isLink(place)) await unlink(place);
      const file = await files.open(at, options);
      await pipeline(Readable.from(file.stream), createWriteStream(place)).finally(file.close);
      await chmod(place, Number.parseInt(mode, 8) & PERMISSIONS);
    },
  );
  for (const { path: at, type, target } of found) {
    if (type !== "symlink" || target === undefined) continue;
    const place = placeOf(at);
    await refuseLinks(top, dirname(place));
    await mkdir(dirname(place), { recursive: true });
    const before = await readlink(place).catch(() => null);
    if (before === target) continue;
    if (before !== null) await unlink(place);
    await symlink(target, place);
  }
}

/** Throws if this path, or a directory between it and the top, is a link: an earlier copy may have created it, with any target. */
async function refuseLinks(top: string, path: string): Promise<void> {
  for (let at = path; at.length > top.length; at = dirname(at)) {
    if (await isLink(at)) throw new RoomdError(`${at} is a link: nothing is written through it.`);
  }
}

async function isLink(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null))?.isSymbolicLink() ?? false;
}

async function each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await work(next);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, worker));
}
