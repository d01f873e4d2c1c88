/** Disk usage of an organization's own templates, and its limit by the plan. It is measured on each call: they have few files. */
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { OrgId } from "../../../shared/ids.ts";
import type { Paths } from "../../core/config/paths.ts";
import { absent, namesIn } from "../../host/files/gone.ts";
import { type Caps, templatesExceeded } from "../orgs/index.ts";
import { keptVersions, publishedVersion, VERSION } from "./registry.ts";

const BLOCK_BYTES = 512;
const MIB = 1024 ** 2;

/** A version that is about to be published. */
export interface NextVersion {
  templateId: string;
  version: string;
}

/**
 * Disk usage in MiB, rounded up: current versions, and previous versions that sandboxes may run on; with `next`, the usage after the next
 * version.
 */
export async function templateMib(paths: Paths, orgId: OrgId, next?: NextVersion): Promise<number> {
  let bytes = 0;
  for (const templateId of await namesIn(paths.templates_of(orgId))) {
    const home = paths.template(templateId, orgId);
    const current = next?.templateId === templateId ? next.version : publishedVersion(home);
    for (const version of keptVersions(await namesIn(home), current))
      for (const taken of await takenIn(join(home, version))) bytes += taken;
  }
  return Math.ceil(bytes / MIB);
}

/** Before a build: throws quota_exceeded if there is no space for another version. */
export function requireLeft(used: number, caps: Caps): void {
  if (used >= caps.hard_cap) throw templatesExceeded(used, caps);
}

/** Throws quota_exceeded if the next version would exceed the cap. */
export function requireFits(used: number, caps: Caps): void {
  if (used > caps.hard_cap) throw templatesExceeded(used, caps, "With the new version the organization has");
}

/**
 * Size of the largest file of the running build, in MiB: a root, or the disk of a guest that works on it. It is part of the version, or is
 * copied into it.
 */
export async function largestInWork(paths: Paths, orgId: OrgId, templateId: string): Promise<number> {
  const home = paths.template(templateId, orgId);
  const current = publishedVersion(home) ?? "";
  const made = (await namesIn(home)).filter((name) => VERSION.test(name) && name > current);
  const guests = (await namesIn(paths.trials)).map((name) => join(paths.trials, name));
  let largest = 0;
  for (const directory of [...made.map((name) => join(home, name)), ...guests])
    largest = Math.max(largest, ...(await takenIn(directory)));
  return Math.ceil(largest / MIB);
}

/** Allocated bytes of each file in a directory. */
async function takenIn(directory: string): Promise<number[]> {
  const taken: number[] = [];
  for (const name of await namesIn(directory)) {
    const there = await lstat(join(directory, name)).catch(absent);
    if (there?.isFile()) taken.push(there.blocks * BLOCK_BYTES);
  }
  return taken;
}
