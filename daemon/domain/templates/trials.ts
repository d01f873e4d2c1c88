/**
 * Owns what template builds leave when they are killed: the guests that they boot to make and to try a template lie apart
 * from sandboxes, and one build at a time holds the lock, so whatever is there when it is taken belongs to nobody. And what the service
 * leaves of machines of its own.
 */
import { existsSync, lstatSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Paths, SandboxPaths } from "../../core/paths.ts";
import { freeRemains, guestProcesses } from "../../host/guest/remains.ts";
import { LockedError, lockWhenFree, takeLock } from "../../host/lock.ts";
import { isDraft } from "./manifest.ts";
import { keptVersions, publishedVersion, UNPUBLISHED, VERSION } from "./registry.ts";

/**
 * Does something while no other build runs on these directories. Builds wait for each other, and the one that waits is the next: one of the
 * operator's beside the daemon does not come after all those that organizations have queued. `onWait` gets the pid of the build under way.
 */
export async function whileBuilding<T>(
  paths: Paths,
  work: () => Promise<T>,
  onWait: (holder: string) => void = () => {},
): Promise<T> {
  const pass = await lockWhenFree(paths.build_turn, onWait);
  const release = await lockWhenFree(paths.build_lock, onWait).finally(pass);
  return await alone(paths, release, work);
}

async function alone<T>(paths: Paths, release: () => void, work: () => Promise<T>): Promise<T> {
  try {
    // Found at once, as the lock is taken; removed once no guest has it.
    const left = unpublishedIn(paths);
    await sweepGuests(paths.trial);
    for (const path of left) await rm(path, { recursive: true, force: true });
    return await work();
  } finally {
    release();
  }
}

/** Frees what killed builds left, unless one is running now. */
export async function sweepDeadTrials(paths: Paths): Promise<void> {
  try {
    await alone(paths, takeLock(paths.build_lock, "data_dir"), async () => {});
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
  }
}

/** Whether there are guests or files of a build, be it one that runs. */
export function hasTrials(paths: Paths): boolean {
  const { runtime, directory } = paths.trial("any");
  return [runtime, directory].some((one) => namesIn(dirname(one)).length > 0);
}

/** Frees what the service before this one left of machines of its own, that made films or were being saved; before there are any of this one. */
export async function sweepOwnMachines(paths: Paths): Promise<void> {
  // Found at once: this one may begin others soon.
  const drafts = homesIn(paths.templates)
    .flatMap(homesIn)
    .flatMap(homesIn)
    .filter((path) => isDraft(basename(path)));
  const removed = drafts.map((draft) => rm(draft, { recursive: true, force: true }));
  await Promise.all([...removed, ...[paths.film, paths.saving].map(sweepGuests)]);
}

/** Frees every guest there is of a kind, whoever has it; those that begin meanwhile are left alone. */
export async function sweepGuests(placeOf: (sandboxId: string) => SandboxPaths): Promise<void> {
  const sockets = dirname(placeOf("any").runtime);
  const directories = dirname(placeOf("any").directory);
  const names = () => new Set([...namesIn(sockets), ...namesIn(directories)]);
  const there = names();
  const processes = await guestProcesses(sockets);
  // One that has begun since has its directories.
  const since = names();
  for (const name of [...there, ...[...processes.keys()].filter((name) => !there.has(name) && !since.has(name))]) {
    await freeRemains(placeOf(name));
    await rm(placeOf(name).directory, { recursive: true, force: true });
  }
}

/**
 * Versions that no build has published: those after the one in use, or all where none is. The one before it may have sandboxes;
 * those before that are what a build that was killed had still to remove.
 * What is a link, or has a name that no build gives, is somebody else's.
 */
function unpublishedIn(paths: Paths): string[] {
  const owners = [null, ...namesIn(paths.org_templates)];
  return owners
    .flatMap((owner) => homesIn(paths.templates_of(owner)))
    .flatMap((home) => {
      const names = readdirSync(home);
      const kept = keptVersions(names, publishedVersion(home));
      const left = names.filter((name) => (VERSION.test(name) ? !kept.includes(name) : name.startsWith(UNPUBLISHED)));
      return left.map((name) => join(home, name));
    });
}

/** The directories in one, which a link is not. */
function homesIn(directory: string): string[] {
  if (!lstatSync(directory, { throwIfNoEntry: false })?.isDirectory()) return [];
  const entries = readdirSync(directory, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(directory, name));
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}
