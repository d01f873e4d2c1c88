/**
 * Cache of roots from earlier builds: an image's, unpacked, and the results of its steps. Each is named by all of its inputs, belongs to
 * one owner, and is removed after a week without use. All owners share one limit; above it, roots of the largest owner are evicted (LRU):
 * an owner within an equal share of it loses nothing to the builds of others.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, mkdir, open, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { OrgId } from "../../../shared/ids.ts";
import { wallMs } from "../../core/clock.ts";
import type { Paths } from "../../core/config/paths.ts";
import { ServiceError } from "../../core/service-error.ts";
import { absent, namesIn } from "../../host/files/gone.ts";
import type { ImageFacts } from "./image/layout.ts";

/** Time without use after which a root is removed. */
const KEPT_MS = 7 * 86_400_000;
/** A disk without its facts, or the reverse, is being written, or is left over from a killed build. Deleted after this time. */
const UNNAMED_MS = 3_600_000;
const DISK = ".qcow2";
const FACTS = ".json";
const BLOCK_BYTES = 512;

export interface KeptRoot {
  image: ImageFacts;
  /** Egress allowlist of its steps. */
  egress_allowlist: readonly string[];
}

/** Whether `list` permits all egress that the cached steps had. */
const covers = (list: readonly string[], kept: readonly string[]) =>
  list.includes("*") || kept.every((entry) => list.includes(entry));

/** Cache key of the result of `content` on `parent`. */
export function rootKey(parent: string, content: unknown): string {
  return createHash("sha256")
    .update(`${parent}\n${JSON.stringify(content)}`)
    .digest("hex");
}

export interface RootCache {
  /** Whether the cache is empty. */
  isEmpty(): Promise<boolean>;
  /** Counts as a use. Null: absent. */
  find(key: string): Promise<KeptRoot | null>;
  /**
   * Copies a root to `into`, which is then writable. Null if absent, or if its steps had more egress than this list allows. Throws
   * disk_full.
   */
  take(key: string, into: string, egress_allowlist: readonly string[]): Promise<KeptRoot | null>;
  /** Whether a root of this size would be cached. */
  hasRoom(bytes: number): boolean;
  /** Caches a copy of `root` if there is room for it. */
  keep(key: string, root: string, facts: KeptRoot): Promise<void>;
}

export interface RootCacheDeps {
  paths: Paths;
  /** Limit of all owners together; 0: no caching. */
  most_bytes: number;
  /** Throws disk_full. */
  requireSpace(bytes: number): void;
}

/** Cache of an organization, or of the host. */
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
    const { facts } = at(key);
    try {
      const kept = JSON.parse(await readFile(facts, "utf8")) as KeptRoot;
      await utimes(facts, new Date(wallMs()), new Date(wallMs()));
      return kept;
    } catch (error) {
      // A power loss may leave a partial file.
      return error instanceof SyntaxError ? null : absent(error);
    }
  };
  return {
    isEmpty: async () => (await namesIn(directory)).length === 0,
    hasRoom,
    find,
    take: async (key, into, egress_allowlist) => {
      const { disk } = at(key);
      const kept = await find(key);
      if (kept === null || !covers(egress_allowlist, kept.egress_allowlist)) return null;
      try {
        requireSpace(bytesOf(await stat(disk)));
        await copyFile(disk, into, constants.COPYFILE_FICLONE);
        return kept;
      } catch (error) {
        // It was removed concurrently.
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
      await written(`${facts}.new`);
      await rename(`${facts}.new`, facts);
      await sweepRoots(paths, most_bytes);
    },
  };
}

/** Removes roots that are long unused; then evicts the least recently used root of the largest owner until the rest is within the limit. */
export async function sweepRoots({ kept_roots }: Paths, mostBytes: number): Promise<void> {
  const there: CachedRoot[] = [];
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
        if (used !== null) {
          there.push({ owner, disk: path, facts: named, bytes: bytesOf(facts), usedMs: used.mtimeMs });
        }
        continue;
      }
      const hasDisk = name.endsWith(FACTS) && names.includes(name.slice(0, -FACTS.length) + DISK);
      if (!hasDisk && wallMs() - facts.mtimeMs > UNNAMED_MS) await rm(path, { force: true });
    }
  }
  const remove = async ({ facts, disk }: CachedRoot) => {
    for (const path of [facts, disk]) await rm(path, { force: true });
  };
  const sorted = there.sort((one, other) => one.usedMs - other.usedMs);
  const unused = sorted.filter(({ usedMs }) => wallMs() - usedMs > KEPT_MS);
  for (const each of unused) await remove(each);
  const owners = [...Map.groupBy(sorted.slice(unused.length), ({ owner }) => owner).values()];
  const has = owners.map((all) => all.reduce((sum, { bytes }) => sum + bytes, 0));
  for (let bytes = has.reduce((sum, each) => sum + each, 0); bytes > mostBytes; ) {
    const largest = has.indexOf(Math.max(...has));
    const each = owners[largest]?.shift();
    if (!each) return;
    await remove(each);
    has[largest] = (has[largest] ?? 0) - each.bytes;
    bytes -= each.bytes;
  }
}

interface CachedRoot {
  owner: string;
  disk: string;
  facts: string;
  bytes: number;
  usedMs: number;
}

const bytesOf = ({ blocks }: { blocks: number }) => blocks * BLOCK_BYTES;

/** Synced, so that its entry survives a power loss. */
async function written(path: string): Promise<void> {
  await using file = await open(path, "r+");
  await file.sync();
}
