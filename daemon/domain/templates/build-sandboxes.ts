/**
 * Cleanup after killed template builds: the guests that they boot to make and to test a template are stored apart from sandboxes, and one
 * build at a time holds the lock, so all that exists when it is acquired is unowned. Also cleans up leftover machines of the service
 * itself.
 */
import { existsSync, lstatSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Paths, SandboxPaths } from "../../core/config/paths.ts";
import { freeLeftovers, guestProcesses } from "../../host/guest/leftovers.ts";
import { LockedError, lockWhenFree, takeLock } from "../../host/lock.ts";
import { isDraft } from "./manifest.ts";
import { keptVersions, publishedVersion, UNPUBLISHED, VERSION } from "./registry.ts";

/**
 * Runs `work` while no other build runs on these directories. Builds wait for each other, and the waiting one is next: an operator's build
 * outside of the daemon does not come after all those that organizations have queued. `onWait` gets the pid of the running build.
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
    // Listed immediately after the lock is acquired; removed once no guest uses them.
    const left = unpublishedIn(paths);
    await sweepGuests(paths.trial);
    for (const path of left) await rm(path, { recursive: true, force: true });
    return await work();
  } finally {
    release();
  }
}

/** Frees leftovers of killed builds, unless a build is running. */
export async function sweepDeadBuilds(paths: Paths): Promise<void> {
  try {
    await alone(paths, takeLock(paths.build_lock, "data_dir"), async () => {});
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
  }
}

/** Whether there are guests or files of a build, including a running one. */
export function hasBuilds(paths: Paths): boolean {
  const { runtime, directory } = paths.trial("any");
  return [runtime, directory].some((one) => namesIn(dirname(one)).length > 0);
}

/** Frees leftover machines of the previous service, which made films or were being saved; before this service starts any. */
export async function sweepOwnMachines(paths: Paths): Promise<void> {
  // Listed immediately: this service may start others soon.
  const drafts = homesIn(paths.templates)
    .flatMap(homesIn)
    .flatMap(homesIn)
    .filter((path) => isDraft(basename(path)));
  const removed = drafts.map((draft) => rm(draft, { recursive: true, force: true }));
  await Promise.all([...removed, ...[paths.film, paths.saving].map(sweepGuests)]);
}

/** Frees every existing guest of a kind, whether in use or not; guests that start in the meantime are left alone. */
export async function sweepGuests(placeOf: (sandboxId: string) => SandboxPaths): Promise<void> {
  const sockets = dirname(placeOf("any").runtime);
  const directories = dirname(placeOf("any").directory);
  const names = () => new Set([...namesIn(sockets), ...namesIn(directories)]);
  const there = names();
  const processes = await guestProcesses(sockets);
  // A guest that has started since has its directories.
  const since = names();
  for (const name of [...there, ...[...processes.keys()].filter((name) => !there.has(name) && !since.has(name))]) {
    await freeLeftovers(placeOf(name));
    await rm(placeOf(name).directory, { recursive: true, force: true });
  }
}

/**
 * Versions that no build has published: those after the current one, or all if none exists. The previous one may have sandboxes; older
 * ones are leftovers that a killed build had still to remove. Links, and names that no build gives, are not ours.
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

/** Subdirectories of a directory; none if it is a link. */
function homesIn(directory: string): string[] {
  if (!lstatSync(directory, { throwIfNoEntry: false })?.isDirectory()) return [];
  const entries = readdirSync(directory, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(directory, name));
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}
