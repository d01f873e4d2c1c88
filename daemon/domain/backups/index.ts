/**
 * Scheduled backups to an object store: when one is due, one at a time, and the result of the last.
 *
 * Due: an interval after the last successful one; after a failure, a shorter pause after it. A backup missed while the service was stopped
 * is due at its start.
 */
import { readFileSync } from "node:fs";
import { wallMs } from "../../core/clock.ts";
import { repeat } from "../../core/concurrency/repeat.ts";
import { replaceDurable } from "../../core/config/durable-file.ts";
import { describeError } from "../../core/service-error.ts";
import type { BackupsDeps, S3Plan, Stored } from "./deps.ts";

export { fetchDay, retireDays, sendDays } from "./audit-days.ts";
export { planBackups, type S3Plan, type Stored } from "./deps.ts";
export { readName, readUrl, urlOf } from "./names.ts";
export { StoreError } from "./object-store.ts";
export { BrokenBackup, WrongPassphrase } from "./seal.ts";
export { download, listStored, upload } from "./upload.ts";

const LOOK_MS = 15_000;
/** Pause after a failed backup. */
const AGAIN_MS = 15 * 60_000;

/** State of backups that survives a restart; times in milliseconds since 1970. */
export interface BackupState {
  /** Time since which backups are expected. */
  since: number;
  good: ({ at: number } & Stored) | null;
  /** The last backup, if it failed. */
  failed: { at: number; why: string } | null;
}

export interface BackupFigures {
  /** Since the last successful backup; if there was none, since backups are scheduled. */
  age_seconds: number;
  interval_seconds: number;
  failed: string | null;
  has_any: boolean;
}

export interface Backups {
  /** Null if no backups are scheduled. */
  figures(): BackupFigures | null;
  start(): void;
  stop(): Promise<void>;
}

export function makeBackups({ plan, log, stateFile, make }: BackupsDeps): Backups {
  const everyMs = plan?.everyMs ?? null;
  if (everyMs === null) return { figures: () => null, start: () => {}, stop: async () => {} };
  let state = readBackupState(stateFile);
  if (!state) {
    state = { since: wallMs(), good: null, failed: null };
    writeBackupState(stateFile, state);
  }
  let known: BackupState = state;
  const ending = new AbortController();
  let underWay: Promise<void> = Promise.resolve();
  let stopLooking = () => {};

  const attempt = async () => {
    const outcome = await make(ending.signal).catch((error: unknown) => ({ failed: describeError(error) }));
    if (ending.signal.aborted) return;
    if ("failed" in outcome) log.error("failed to make a backup", { error: outcome.failed });
    else log.info("a backup was made", { ...outcome.stored });
    known = afterwards(readBackupState(stateFile) ?? known, outcome, wallMs());
    writeBackupState(stateFile, known);
  };
  const look = async () => {
    // A manual backup counts.
    known = readBackupState(stateFile) ?? known;
    if (wallMs() < dueAt(known, everyMs)) return;
    underWay = attempt().catch((error: unknown) =>
      log.error("failed to write the state of backups", { error: describeError(error) }),
    );
    await underWay;
  };
  return {
    figures: () => figuresOf(known, everyMs),
    start: () => {
      stopLooking = repeat(LOOK_MS, look);
    },
    stop: async () => {
      stopLooking();
      ending.abort();
      await underWay;
    },
  };
}

/** The same from another process than the daemon, if a daemon has started them; null if no backups are scheduled. */
export function backupFigures(plan: S3Plan | null, stateFile: string): BackupFigures | null {
  const state = readBackupState(stateFile);
  return state && plan?.everyMs ? figuresOf(state, plan.everyMs) : null;
}

function figuresOf({ good, since, failed }: BackupState, everyMs: number): BackupFigures {
  return {
    age_seconds: Math.max(0, (wallMs() - (good?.at ?? since)) / 1000),
    interval_seconds: everyMs / 1000,
    failed: failed?.why ?? null,
    has_any: good !== null,
  };
}

/** Time of the next backup. Ignores times in the future, so that a clock that was set back does not delay it. */
export function dueAt({ good, failed }: BackupState, everyMs: number, now = wallMs()): number {
  const [goodAt, failedAt] = [good?.at ?? 0, failed?.at ?? 0].map((at) => (at > now ? 0 : at)) as [number, number];
  return Math.max(goodAt === 0 ? 0 : goodAt + everyMs, failedAt === 0 ? 0 : failedAt + Math.min(AGAIN_MS, everyMs));
}

export function afterwards(
  state: BackupState,
  outcome: { failed: string } | { stored: Stored },
  at: number,
): BackupState {
  if ("failed" in outcome) return { ...state, failed: { at, why: outcome.failed } };
  const { name, size_bytes } = outcome.stored;
  return { ...state, good: { at, name, size_bytes }, failed: null };
}

/** Null if the file is absent or invalid. */
export function readBackupState(file: string): BackupState | null {
  try {
    const state = JSON.parse(readFileSync(file, "utf8")) as BackupState;
    return typeof state.since === "number" ? state : null;
  } catch {
    return null;
  }
}

export function writeBackupState(file: string, state: BackupState): void {
  replaceDurable(file, `${JSON.stringify(state)}\n`, 0o600);
}
