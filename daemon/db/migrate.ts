/** Owns the schema's history: the numbered files of migrations/, embedded in the binary, run once each in order. */
import type { Connection } from "./client.ts";
import first from "./migrations/0001_first.sql" with { type: "text" };
import auditHeads from "./migrations/0002_audit_heads.sql" with { type: "text" };
import driveFault from "./migrations/0003_drive_fault.sql" with { type: "text" };
import roomDriveChoice from "./migrations/0004_room_drive_choice.sql" with { type: "text" };
import ssh from "./migrations/0005_ssh.sql" with { type: "text" };
import idempotentReplies from "./migrations/0006_idempotent_replies.sql" with { type: "text" };
import fabric from "./migrations/0007_fabric.sql" with { type: "text" };
import egress from "./migrations/0008_egress.sql" with { type: "text" };
import ports from "./migrations/0009_ports.sql" with { type: "text" };
import keys from "./migrations/0010_keys.sql" with { type: "text" };
import quota from "./migrations/0011_quota.sql" with { type: "text" };
import auditStarts from "./migrations/0012_audit_starts.sql" with { type: "text" };
import idempotentWork from "./migrations/0013_idempotent_work.sql" with { type: "text" };
import usage from "./migrations/0014_usage.sql" with { type: "text" };
import keyRates from "./migrations/0015_key_rates.sql" with { type: "text" };
import credits from "./migrations/0016_credits.sql" with { type: "text" };
import auditBatches from "./migrations/0017_audit_batches.sql" with { type: "text" };
import keptDrives from "./migrations/0018_kept_drives.sql" with { type: "text" };
import orgAnswers from "./migrations/0019_org_answers.sql" with { type: "text" };
import nextKeptDrive from "./migrations/0020_next_kept_drive.sql" with { type: "text" };
import undestroyed from "./migrations/0021_undestroyed.sql" with { type: "text" };
import keptMessages from "./migrations/0022_kept_messages.sql" with { type: "text" };
import auditCounts from "./migrations/0023_audit_counts.sql" with { type: "text" };
import idempotencyByOrg from "./migrations/0024_idempotency_by_org.sql" with { type: "text" };
import ended from "./migrations/0025_ended.sql" with { type: "text" };
import adoptions from "./migrations/0026_adoptions.sql" with { type: "text" };
import disk from "./migrations/0027_disk.sql" with { type: "text" };
import endsWithKey from "./migrations/0028_ends_with_key.sql" with { type: "text" };
import users from "./migrations/0029_users.sql" with { type: "text" };
import browsers from "./migrations/0030_browsers.sql" with { type: "text" };
import ends from "./migrations/0031_ends.sql" with { type: "text" };
import oauth from "./migrations/0032_oauth.sql" with { type: "text" };
import passkeys from "./migrations/0033_passkeys.sql" with { type: "text" };
import ledger from "./migrations/0034_ledger.sql" with { type: "text" };
import identities from "./migrations/0035_identities.sql" with { type: "text" };
import mail from "./migrations/0036_mail.sql" with { type: "text" };
import billing from "./migrations/0037_billing.sql" with { type: "text" };
import planBy from "./migrations/0038_plan_by.sql" with { type: "text" };
import departed from "./migrations/0039_departed.sql" with { type: "text" };
import awaited from "./migrations/0040_awaited.sql" with { type: "text" };
import egressDestinations from "./migrations/0041_egress_destinations.sql" with { type: "text" };
import templateBuilds from "./migrations/0042_template_builds.sql" with { type: "text" };
import buildTime from "./migrations/0043_build_time.sql" with { type: "text" };
import hibernation from "./migrations/0044_hibernation.sql" with { type: "text" };
import snapshots from "./migrations/0045_snapshots.sql" with { type: "text" };
import branches from "./migrations/0046_branches.sql" with { type: "text" };
import checkpoints from "./migrations/0047_checkpoints.sql" with { type: "text" };
import webhooks from "./migrations/0048_webhooks.sql" with { type: "text" };
import cluster from "./migrations/0049_cluster.sql" with { type: "text" };
import roomEpochs from "./migrations/0050_room_epochs.sql" with { type: "text" };
import sharedWebhooks from "./migrations/0051_shared_webhooks.sql" with { type: "text" };
import roomNumbers from "./migrations/0052_room_numbers.sql" with { type: "text" };
import lighterIndexes from "./migrations/0053_lighter_indexes.sql" with { type: "text" };
import keysByAge from "./migrations/0054_keys_by_age.sql" with { type: "text" };
import wakeDefaults from "./migrations/0055_wake_defaults.sql" with { type: "text" };
import hibernatedCids from "./migrations/0056_hibernated_cids.sql" with { type: "text" };
import liveByRoom from "./migrations/0057_live_by_room.sql" with { type: "text" };
import placementsByHost from "./migrations/0058_placements_by_host.sql" with { type: "text" };
import templateGroups from "./migrations/0059_template_groups.sql" with { type: "text" };
import makers from "./migrations/0060_makers.sql" with { type: "text" };
import messageSpreads from "./migrations/0061_message_spreads.sql" with { type: "text" };

/** In order; the database's user_version says how many have run. */
export const MIGRATIONS: readonly string[] = [
  first,
  auditHeads,
  driveFault,
  roomDriveChoice,
  ssh,
  idempotentReplies,
  fabric,
  egress,
  ports,
  keys,
  quota,
  auditStarts,
  idempotentWork,
  usage,
  keyRates,
  credits,
  auditBatches,
  keptDrives,
  orgAnswers,
  nextKeptDrive,
  undestroyed,
  keptMessages,
  auditCounts,
  idempotencyByOrg,
  ended,
  adoptions,
  disk,
  endsWithKey,
  users,
  browsers,
  ends,
  oauth,
  passkeys,
  ledger,
  identities,
  mail,
  billing,
  planBy,
  departed,
  awaited,
  egressDestinations,
  templateBuilds,
  buildTime,
  hibernation,
  snapshots,
  branches,
  checkpoints,
  webhooks,
  cluster,
  roomEpochs,
  sharedWebhooks,
  roomNumbers,
  lighterIndexes,
  keysByAge,
  wakeDefaults,
  hibernatedCids,
  liveByRoom,
  placementsByHost,
  templateGroups,
  makers,
  messageSpreads,
];

/** Brings the database up to date; `beforeChange` may throw when another process must not have it changed. Refuses one that a newer roomd has written. */
export function migrate(connection: Connection, beforeChange?: () => void): void {
  const done = Number(connection.pragma("user_version"));
  if (done > MIGRATIONS.length) {
    throw new Error(
      `the database has schema ${done}, this roomd knows ${MIGRATIONS.length}: run the newer roomd, or restore a backup`,
    );
  }
  if (done < MIGRATIONS.length) beforeChange?.();
  for (const [index, sql] of MIGRATIONS.entries()) {
    if (index < done) continue;
    connection.execute("BEGIN IMMEDIATE");
    try {
      // Another process may have migrated while this one waited for the lock.
      if (Number(connection.pragma("user_version")) <= index) {
        connection.execute(sql);
        connection.execute(`PRAGMA user_version = ${index + 1}`);
      }
      connection.execute("COMMIT");
    } catch (error) {
      connection.execute("ROLLBACK");
      throw error;
    }
  }
}
