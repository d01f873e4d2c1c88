/**
 * The kernel's own quota of a drive, if the file system has project quotas: everything that guests and the daemon make in the drive's
 * directory belongs to its project, and a write above the limit fails with EDQUOT.
 *
 *     begin  an empty directory gets a dedicated project, with limits
 *     use    its usage, without a walk
 *     end    before the directory is erased: the limits are removed, and with the last file the project is free again
 *
 * The project is stored by the kernel, in the directory itself: it stays with the drive when that is retired, and there is no second record
 * that could contradict it. Its number is derived from the room_uid; a project with usage or a limit is taken, perhaps by another daemon on
 * this file system, and the next is tried. A directory that was made without a project stays without.
 *
 * ext4 enforces no limit on a daemon with CAP_SYS_RESOURCE, so drive calls keep their own checks. virtiofsd is limited: it has that
 * capability neither as root of its namespace nor as bound root.
 */
import { createHash } from "node:crypto";
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../core/log.ts";
import { describeError, errnoOf } from "../../core/service-error.ts";
import { type QuotaCalls, quotaCalls, type TreeLimits, type TreeUse } from "./quota-calls.ts";

export type { TreeLimits };

const NO_LIMITS: TreeLimits = { bytes: 0, inodes: 0 };
/** Above the small numbers that people and other programs choose. */
const FIRST_PROJECT = 2 ** 30;
const PROJECTS = 2 ** 30;
const MAX_TRIES = 16;

export interface QuotaFindings {
  kind: "project_quota" | "measured";
  reason: string;
}

const TRIAL_BYTES = 128 * 1024;
const TRIAL_LIMITS = { bytes: 1024 ** 2, inodes: 16 };

/** Tests on a directory in `place` whether the file system supports project quotas. */
export function inspectProjectQuota(place: string, calls: QuotaCalls = quotaCalls): QuotaFindings {
  try {
    if (!calls.enforces(place)) return measured("accounts for project quotas but does not enforce them");
    const scratch = mkdtempSync(join(place, ".quota-"));
    try {
      return tryOn(scratch, calls);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  } catch (error) {
    return measured(`has no project quotas (${errnoOf(error) ?? describeError(error)})`);
  }
}

function tryOn(scratch: string, calls: QuotaCalls): QuotaFindings {
  const project = takeProject(scratch, scratch, TRIAL_LIMITS, calls);
  try {
    const file = openSync(join(scratch, "trial"), "wx", 0o600);
    try {
      writeSync(file, Buffer.alloc(TRIAL_BYTES, 1));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    const { bytes, inodes, limits } = calls.use(scratch, project);
    const counts = bytes >= TRIAL_BYTES && inodes === 2 && limits.bytes === TRIAL_LIMITS.bytes;
    if (!counts) return measured("does not account for writes to a project");
    return { kind: "project_quota", reason: "The kernel enforces each drive's quota by project quotas." };
  } finally {
    calls.setLimits(scratch, project, NO_LIMITS);
  }
}

function measured(problem: string): QuotaFindings {
  return { kind: "measured", reason: `The file system of data_dir ${problem}, so drives are measured.` };
}

/** The drives' quotas; on a host without support for them all operations do nothing. */
export class ProjectQuota {
  readonly #enabled: boolean;
  readonly #log: Log;
  readonly #calls: QuotaCalls;

  constructor({ kind }: Pick<QuotaFindings, "kind">, log: Log, calls: QuotaCalls = quotaCalls) {
    this.#enabled = kind === "project_quota";
    this.#log = log;
    this.#calls = calls;
  }

  /** Gives an empty directory a project. If that fails the directory is measured, as others are. */
  begin(directory: string, seed: string, limits: TreeLimits): void {
    this.#try("failed to set a drive's project quota", directory, () =>
      takeProject(directory, seed, limits, this.#calls),
    );
  }

  /** Updates the limits of a directory, if it has a project. */
  renew(directory: string, limits: TreeLimits): void {
    this.#try("failed to renew a project quota", directory, () => {
      const project = this.#calls.projectOf(directory);
      if (project !== 0) this.#calls.setLimits(directory, project, withSelf(limits));
    });
  }

  /** Usage of the directory, itself not counted; null if it has no project, or is gone, and must be measured. */
  use(directory: string): TreeLimits | null {
    if (!this.#enabled) return null;
    try {
      const project = this.#calls.projectOf(directory);
      if (project === 0) return null;
      const { bytes, inodes, limits } = this.#calls.use(directory, project);
      // Without limits the kernel enforces nothing.
      return limits.bytes === 0 ? null : { bytes, inodes: Math.max(0, inodes - 1) };
    } catch {
      return null;
    }
  }

  /** Call before the directory is erased; does nothing if it has no project, or is gone. */
  end(directory: string): void {
    this.#try("failed to remove a project quota", directory, () => {
      const project = this.#calls.projectOf(directory);
      if (project !== 0) this.#calls.setLimits(directory, project, NO_LIMITS);
    });
  }

  #try(message: string, directory: string, work: () => void): void {
    if (!this.#enabled) return;
    try {
      work();
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") this.#log.warn(message, { directory, error: describeError(error) });
    }
  }
}

/** Gives the directory the first free project of its sequence. The limit is set first: it marks the project as taken for others. */
function takeProject(directory: string, seed: string, limits: TreeLimits, calls: QuotaCalls): number {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const hash = createHash("sha256").update(`${seed} ${tries}`).digest().readUInt32LE(0);
    const project = FIRST_PROJECT + (hash % PROJECTS);
    if (!isFree(useOf(directory, project, calls))) continue;
    calls.setLimits(directory, project, withSelf(limits));
    try {
      calls.setProject(directory, project);
      if (calls.projectOf(directory) !== project) throw new Error("the directory did not take its project");
      return project;
    } catch (error) {
      calls.setLimits(directory, project, NO_LIMITS);
      throw error;
    }
  }
  throw new Error(`${MAX_TRIES} projects are all taken`);
}

/** XFS returns ENOENT for an unused project. */
function useOf(directory: string, project: number, calls: QuotaCalls): TreeUse | null {
  try {
    return calls.use(directory, project);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}

function isFree(use: TreeUse | null): boolean {
  return use === null || use.bytes + use.inodes + use.limits.bytes + use.limits.inodes === 0;
}

/** Adds the directory itself, which is one of the project's inodes. */
function withSelf({ bytes, inodes }: TreeLimits): TreeLimits {
  return { bytes, inodes: inodes + 1 };
}
