/**
 * Backups to the configured object store, on demand or scheduled: upload, audit records, the last result; and the list of stored backups.
 */
import type { Config } from "../../core/config/config.ts";
import { hostIdOf } from "../../core/config/host-id.ts";
import type { Paths } from "../../core/config/paths.ts";
import { describeError } from "../../core/service-error.ts";
import { DamagedCopy } from "../../db/copy.ts";
import {
  afterwards,
  BrokenBackup,
  listStored,
  planBackups,
  readBackupState,
  retireDays,
  type S3Plan,
  StoreError,
  sendDays,
  upload,
  urlOf,
  WrongPassphrase,
  writeBackupState,
} from "../../domain/backups/index.ts";
import { readWhile } from "../../host/pipe.ts";
import { CliError, EXIT } from "../kit/cli-error.ts";
import { bytesText, type JsonOption, showValue, table } from "../kit/output.ts";
import { type BackupReport, backUp, copyService, oneAtATime, requireService } from "./backup-archive.ts";
import { type ConfigOption, readConfiguration } from "./operator.ts";

type Uploaded = Awaited<ReturnType<typeof upload>>;

/** Writes an audit record about the service as a whole. */
export type Recording = (event: string, details: Record<string, unknown>) => Promise<unknown>;

interface StoreBackup {
  config: Config;
  paths: Paths;
  record: Recording;
  plan: S3Plan;
  onStage(stage: string): void;
}

/** `days_sent`: closed days of the audit that were uploaded because the store did not have them. */
type StoredBackup = Uploaded & Pick<BackupReport, "changed" | "missed" | "days_missing"> & { days_sent: number };

/** Throws CliError with the reason and a hint. */
export async function backupToStore(request: StoreBackup): Promise<StoredBackup> {
  const { config, paths, record, plan, onStage } = request;
  requireService(paths);
  const to = urlOf(plan, "");
  // Recorded before the copy, so that the backup contains the record too.
  await record("backup.begun", { to });
  try {
    const stored = await oneAtATime(paths, async () => {
      let made: BackupReport | null = null;
      const hostId = hostIdOf(config, paths.host_id);
      const copied = await copyService(paths, config);
      onStage("sending closed days of the audit");
      const { sent: days_sent, damaged } = await sendDays(plan, hostId, copied.days);
      onStage("sending the backup");
      const source = readWhile(async (file) => {
        made = await backUp(paths, file, copied, { withDays: false });
      });
      const uploaded = await upload(plan, source, { hostId, onStage, at: new Date(copied.facts.made_at) });
      const { changed, missed, days_missing } = made as unknown as BackupReport;
      const undeleted = await retireDays(plan, hostId, copied.purged).then(
        () => uploaded.undeleted,
        (error: unknown) => uploaded.undeleted ?? describeError(error),
      );
      return { ...uploaded, undeleted, changed, missed, days_sent, days_missing: [...days_missing, ...damaged] };
    });
    const { name, size_bytes, is_read_back, deleted, undeleted, days_sent, days_missing } = stored;
    const details = { is_read_back, deleted, undeleted, days_sent, days_missing };
    await record("backup.stored", { to, name, size_bytes, ...details });
    remember(paths.backup_state, { stored: { name, size_bytes } });
    return stored;
  } catch (error) {
    const translated = toldOf(error);
    const why = translated instanceof Error ? translated.message : String(translated);
    await record("backup.failed", { to, why });
    throw translated;
  }
}

function remember(file: string, outcome: { stored: { name: string; size_bytes: number } }): void {
  const now = Date.now();
  writeBackupState(file, afterwards(readBackupState(file) ?? { since: now, good: null, failed: null }, outcome, now));
}

/** The error with a message for a person. */
export function toldOf(error: unknown): unknown {
  const cliError = (detail: string, hint: string | null) => new CliError({ detail, errors: [], hint });
  if (error instanceof StoreError) return cliError(error.message, error.hint);
  if (error instanceof WrongPassphrase)
    return cliError(
      "The passphrase does not open this backup.",
      "Set backup.s3.passphrase_file to a file with the passphrase that the backup was made with.",
    );
  if (error instanceof DamagedCopy)
    return cliError(
      error.message,
      "No backup was made. Check the disk, and the database with `roomd audit verify --host`; keep the existing backups.",
    );
  if (error instanceof BrokenBackup)
    return cliError(
      `The backup is damaged: ${error.message}.`,
      "Choose another backup: `roomd backup list` lists them.",
    );
  return error;
}

/** Throws CliError if no object store is configured. */
export function requirePlan(config: Config): S3Plan {
  const plan = planBackups(config);
  if (plan) return plan;
  const hint = "Set backup.s3.bucket and the other backup.s3 keys: `roomd config` lists them.";
  throw new CliError({ detail: "No object store is configured for backups.", errors: [], hint }, EXIT.usage);
}

/** Lists the backups of all hosts that use the store, newest first. */
export async function listBackups(options: JsonOption & ConfigOption): Promise<void> {
  const plan = requirePlan(readConfiguration(options).config);
  const found = await listStored(plan).catch((error: unknown) => {
    throw toldOf(error);
  });
  const items = found.map((each) => ({ url: urlOf(plan, each.name), ...each }));
  await showValue({ items, next_cursor: null }, options, () =>
    table(
      ["MADE", "HOST", "SIZE", "BACKUP"],
      items.map(({ made_at, host_id, size_bytes, url }) => [made_at, host_id, bytesText(size_bytes), url]),
    ),
  );
}
