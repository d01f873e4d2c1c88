/**
 * Owns roots that builds have made and later ones begin with: an image's, unpacked, and what its steps have made of it. Each is named by all that it was made
 * of, is its owner's alone, and goes when nobody has used it for a week, or when there is too much.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { OrgId } from "../../../shared/ids.ts";
import type { Paths } from "../../core/paths.ts";
import { errnoOf, ServiceError } from "../../core/service-error.ts";
import type { ImageFacts } from "./image/layout.ts";

/** Unused for so long, it goes. */
const KEPT_MS = 7 * 86_400_000;
/** A disk without its facts is being put there, or was left by a build that was killed. */
const UNNAMED_MS = 3_600_000;
const DISK = ".qcow2";
const FACTS = ".json";
const BLOCK_BYTES = 512;

export interface KeptRoot {
  virtual_size: number;
  image: ImageFacts;
}

/** The name of what `content` makes of `parent`. */
export function rootKey(parent: string, content: unknown): string {
  return createHash("sha256")
    .update(`${parent}\n${JSON.stringify(content)}`)
    .digest("hex");
}

export interface RootCache {
  /** Whether there is none at all. */
  isEmpty(): Promise<boolean>;
  /** Null: there is none. */
  find(key: string): Promise<KeptRoot | null>;
  /** Copies one to `into`, which may be written then. Null: there is none. */
  take(key: string, into: string): Promise<KeptRoot | null>;
  /** Whether one of so many bytes would be kept. */
  hasRoom(bytes: number): boolean;
  /** Keeps a copy of `root`, where there is room for it. */
  keep(key: string, root: string, facts: KeptRoot): Promise<void>;
}

export interface RootCacheDeps {
  paths: Paths;
  /** Of all owners together; 0: nothing is kept. */
  most_bytes: number;
  /** Throws disk_full. */
  requireSpace(bytes: number): void;
}

/** Of an organization, or of the host. */
export function rootCache({ paths, most_bytes, requireSpace }: RootCacheDeps, owner: OrgId | undefined): RootCache {
  const directory = paths.kept_roots_of(owner ?? null);
  const at = (key: string) => ({ disk: join(directory, key + DISK), facts: join(directory, key + FACTS) });
  const hasRoom = (bytes: number) => {
    if (bytes > most_bytes) return false;
    try {
      requireSpace(bytes);
      return true;
    } catch (error) {
      if (error instanceof ServiceError) return false;
      throw error;
    }
  };
  const find = async (key: string) => {
    try {
      return JSON.parse(await readFile(at(key).facts, "utf8")) as KeptRoot;
    } catch (error) {
      return absent(error);
    }
  };
  return {
    isEmpty: async () => (await namesIn(directory)).length === 0,
    find,
    hasRoom,
    take: async (key, into) => {
      const { disk, facts } = at(key);
      const kept = await find(key);
      if (kept === null) return null;
      try {
        await copyFile(disk, into, constants.COPYFILE_FICLONE);
        await utimes(facts, new Date(), new Date());
        return kept;
      } catch (error) {
        // It has gone meanwhile.
        await rm(into, { force: true });
        return absent(error);
      }
    },
    keep: async (key, root, kept) => {
      if (!hasRoom((await stat(root)).size)) return;
      const { disk, facts } = at(key);
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const draft = `${disk}.new`;
      await copyFile(root, draft, constants.COPYFILE_FICLONE);
      await written(draft);
      await rename(draft, disk);
      await writeFile(`${facts}.new`, JSON.stringify(kept), { mode: 0o600 });
      await rename(`${facts}.new`, facts);
      await sweepRoots(paths, most_bytes);
    },
  };
}

/** Removes what nobody has used for long, and of the rest what was unused longest, until they are few enough. */
export async function sweepRoots({ kept_roots }: Paths, mostBytes: number): Promise<void> {
  const there: { disk: string; facts: string; bytes: number; usedMs: number }[] = [];
  for (const owner of await namesIn(kept_roots)) {
    const directory = join(kept_roots, owner);
    const names = await namesIn(directory);
    for (const name of names) {
      const path = join(directory, name);
      const facts = await stat(path).catch(absent);
      if (facts === null) continue;
      const key = name.slice(0, -DISK.length);
      if (name.endsWith(DISK) && names.includes(key + FACTS)) {
        const named = join(directory, key + FACTS);
        const used = await stat(named).catch(absent);
        if (used === null) continue;
        there.push({ disk: path, facts: named, bytes: facts.blocks * BLOCK_BYTES, usedMs: used.mtimeMs });
      } else if (!name.endsWith(FACTS) && Date.now() - facts.mtimeMs > UNNAMED_MS) await rm(path, { force: true });
    }
  }
  let bytes = there.reduce((sum, each) => sum + each.bytes, 0);
  for (const each of there.sort((one, other) => one.usedMs - other.usedMs)) {
    if (bytes <= mostBytes && Date.now() - each.usedMs <= KEPT_MS) break;
    for (const path of [each.facts, each.disk]) await rm(path, { force: true });
    bytes -= each.bytes;
  }
}

async function namesIn(directory: string): Promise<string[]> {
  return (await readdir(directory).catch(absent)) ?? [];
}

function absent(error: unknown): null {
  if (errnoOf(error) === "ENOENT") return null;
  throw error;
}

/** A host that loses power shall find what it knows of. */
async function written(path: string): Promise<void> {
  await using file = await open(path, "r+");
  await file.sync();
}
