/** Schema of the database and its version: the initial schema by subject, and the migrations after it, embedded in the binary. */
import { monotonicMs } from "../core/clock.ts";
import type { Connection } from "./client.ts";
import { beginFill, type Fill, finishFill } from "./fills.ts";
import audit from "./schema/audit.sql" with { type: "text" };
import auditRecords from "./schema/audit-records.sql" with { type: "text" };
import billing from "./schema/billing.sql" with { type: "text" };
import cluster from "./schema/cluster.sql" with { type: "text" };
import egress from "./schema/egress.sql" with { type: "text" };
import fabric from "./schema/fabric.sql" with { type: "text" };
import fills from "./schema/fills.sql" with { type: "text" };
import idempotency from "./schema/idempotency.sql" with { type: "text" };
import keys from "./schema/keys.sql" with { type: "text" };
import mail from "./schema/mail.sql" with { type: "text" };
import oauth from "./schema/oauth.sql" with { type: "text" };
import orgs from "./schema/orgs.sql" with { type: "text" };
import ports from "./schema/ports.sql" with { type: "text" };
import rooms from "./schema/rooms.sql" with { type: "text" };
import sandboxes from "./schema/sandboxes.sql" with { type: "text" };
import snapshots from "./schema/snapshots.sql" with { type: "text" };
import ssh from "./schema/ssh.sql" with { type: "text" };
import templates from "./schema/templates.sql" with { type: "text" };
import usage from "./schema/usage.sql" with { type: "text" };
import users from "./schema/users.sql" with { type: "text" };
import webhooks from "./schema/webhooks.sql" with { type: "text" };

/** Schema of a new database. Referenced tables precede the tables that reference them. */
const INITIAL = [
  ...[orgs, keys, users, oauth, mail, billing, usage, rooms, sandboxes, snapshots, templates, ssh, ports, egress],
  ...[fabric, auditRecords, audit, idempotency, webhooks, cluster, fills],
].join("\n");

/**
 * A step of the schema, in one transaction. The service answers only after it, so it must not rewrite tables
 * (test/house/migrations.test.ts).
 */
export interface Migration {
  sql: string;
  /** Rewrites that it starts. */
  fills?: readonly Fill[];
  /** Names of earlier fills that must be complete before it. */
  after?: readonly string[];
}

/** The initial schema and all later migrations, in order of execution. */
export const MIGRATIONS: readonly Migration[] = [{ sql: INITIAL }];

/** Extension of the service manager's start timeout: the minimum, and per MiB that a step may read. */
const LONGER_MS = 60_000;
const LONGER_MS_A_MIB = 100;
const MIB = 1024 ** 2;

export const fillsOf = (migrations: readonly Migration[]): Fill[] => migrations.flatMap(({ fills = [] }) => fills);

/** Version of the initial schema; each migration adds 1. Lower versions were used before the first release. */
export const INITIAL_VERSION = 100;

/** user_version of a fully migrated database. */
export function latestVersion(migrations = MIGRATIONS): number {
  return INITIAL_VERSION + migrations.length - 1;
}

/** Reason for which a database of this user_version cannot be used, as a predicate: "is from …"; null if it is empty or can be migrated. */
export function whyUnknown(version: number, migrations = MIGRATIONS): string | null {
  const latest = latestVersion(migrations);
  if (version > latest) return `is from a newer roomd: it has schema ${version}, and this roomd knows up to ${latest}`;
  return version > 0 && version < INITIAL_VERSION
    ? `is from before the first release of roomd: it has schema ${version}, and the first that can be migrated is ${INITIAL_VERSION}`
    : null;
}

interface Migrating {
  /** Called before the first change; may throw to prevent it while another process uses the database. */
  beforeChange?: (() => void) | undefined;
  /** Called periodically during a long migration; the next call is due within `ms`. */
  extendStart?: ((ms: number) => void) | undefined;
  migrations?: readonly Migration[];
}

/** Migrates the database to the latest version. Throws for databases of a newer roomd or from before the first release. */
export function migrate(
  connection: Connection,
  { beforeChange, extendStart = () => {}, migrations = MIGRATIONS }: Migrating = {},
): void {
  const version = () => Number(connection.pragma("user_version"));
  const unknown = whyUnknown(version(), migrations);
  if (unknown !== null) {
    throw new Error(
      `The database ${connection.file} ${unknown}. Run the roomd that wrote it, restore a backup, or begin with an empty data directory (data_dir).`,
    );
  }
  if (version() < latestVersion(migrations)) beforeChange?.();
  const onPiece = sparsely(() => extendStart(LONGER_MS));
  for (const [index, migration] of migrations.entries()) {
    const after = INITIAL_VERSION + index;
    if (version() >= after) continue;
    for (const fill of fillsNeeded(migration, migrations)) finishFill(connection, fill, onPiece);
    const bytes = Number(connection.pragma("page_count")) * Number(connection.pragma("page_size"));
    extendStart(LONGER_MS + LONGER_MS_A_MIB * (bytes / MIB));
    connection.execute("BEGIN IMMEDIATE");
    try {
      // Another process may have migrated while this one waited for the lock.
      if (version() < after) {
        connection.execute(migration.sql);
        for (const fill of migration.fills ?? []) beginFill(connection, fill);
        connection.execute(`PRAGMA user_version = ${after}`);
      }
      connection.execute("COMMIT");
    } catch (error) {
      connection.execute("ROLLBACK");
      throw error;
    }
  }
}

function fillsNeeded({ after = [] }: Migration, migrations: readonly Migration[]): Fill[] {
  const known = fillsOf(migrations);
  return after.map((name) => {
    const fill = known.find((each) => each.name === name);
    if (!fill) throw new Error(`there is no fill ${name}`);
    return fill;
  });
}

/** Throttles `work` to four calls per extension of the start timeout. */
function sparsely(work: () => void): () => void {
  let dueAt = 0;
  return () => {
    if (monotonicMs() < dueAt) return;
    dueAt = monotonicMs() + LONGER_MS / 4;
    work();
  };
}
