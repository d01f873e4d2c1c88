/**
 * Leases of hosts: each host renews its own periodically, by the database's clock, and reads the others' in the same statement. The last
 * result is kept while the database is unavailable, and ages.
 */
import { randomUUID } from "node:crypto";
import { monotonicMs, sleep, startInterval, stopTimer, wallMs } from "../core/clock.ts";
import { ConfigError } from "../core/config/config.ts";
import type { Log } from "../core/log.ts";
import { describeError } from "../core/service-error.ts";
import { aheadMs, DATABASE_MS } from "./clock-error.ts";
import type { Connections } from "./connections.ts";
import { MAY_TAKE, type Member, type MembershipLock } from "./membership-lock.ts";
import { bringUp } from "./schema.ts";
import { DirectoryUnavailable } from "./unavailable.ts";

const BEAT_MS = 3_000;
const LEASE_SECONDS = 20;
/** How often a daemon that waits to take over a lease checks whether it may. */
const LOOK_MS = 500;
/** Deadline of one beat: a lease outlasts several failed beats. */
const ASK_MS = 5_000;

/** Capacity of a host and its allocations. */
export interface Load {
  /** Memory promised to guests, and the total that may be promised. */
  memory_mib: { promised: number; total: number };
  cpus: number;
  rooms: number;
  sandboxes: number;
  /** Size and free space of the file system of the host's data_dir. Absent from older versions. */
  disk?: { size_bytes: number; free_bytes: number };
  /** Whether its last starts of sandboxes failed for reasons of the host. */
  is_degraded: boolean;
  templates: readonly string[];
  /** Address of its SSH gateway for clients; null: it has none. Absent from older versions. */
  ssh?: { host: string; port: number } | null;
}

export interface Lease {
  host_id: string;
  version: string;
  /** Whether its lease was valid at the last query. */
  is_alive: boolean;
  /** Expiry of its lease, by the database's clock. */
  alive_until: string;
  load: Load;
}

/**
 * With the number of the last beat that was acknowledged as $8, null for a daemon that starts, and its value, and the one attempted since,
 * as $9. A number lower than the acknowledged one belongs to a directory that was rolled back. Numbers increase with the database's time:
 * counted from the previous one alone, a number of a rolled-back directory could be one that another daemon has had before, in changes that
 * were lost.
 */
const IS_MINE = `CASE WHEN $8::bigint IS NULL THEN ${MAY_TAKE} ELSE beat < $8 OR (run = $3 AND beat_id = ANY($9::text[])) END`;

const BEAT = `
  WITH mine AS (
    UPDATE roomd.leases SET run = $3, place = $4, version = $5, load = $6::json, lease_until = now() + make_interval(secs => $7),
           beat = GREATEST(beat + 1, $8 + 1, ${DATABASE_MS}::bigint), beat_id = $10
     WHERE host_id = $1 AND incarnation = $2 AND ${IS_MINE} RETURNING beat)
  SELECT host_id, version, lease_until > now() OR host_id = $1 AS is_alive, load, ${DATABASE_MS} AS database_ms,
         to_char(lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS alive_until,
         EXISTS (SELECT FROM mine) AS is_member, (SELECT beat::float8 FROM mine) AS beat,
         (SELECT lease_until::text FROM roomd.leases WHERE host_id = $1 AND incarnation = $2 AND $8::bigint IS NULL AND NOT ${MAY_TAKE}) AS others_until
    FROM roomd.leases`;

/** Columns that every row of the result has, with the same values. */
interface Beaten {
  is_member: boolean;
  /** Number of the accepted beat; null: the beat was rejected. */
  beat: number | null;
  others_until: string | null;
  database_ms: number;
}

const END = "UPDATE roomd.leases SET lease_until = now() WHERE host_id = $1 AND incarnation = $2 AND run = $3";
const END_MS = 1_000;

export interface LeaseDeps {
  connections: Connections;
  member: Member;
  holder: MembershipLock;
  version: string;
  log: Log;
}

export class Leases {
  readonly #deps: LeaseDeps;
  #known = new Map<string, Lease>();
  /** Time of the last query, by the monotonic clock. */
  #askedAt = Number.NEGATIVE_INFINITY;
  #aheadMs: number | null = null;
  #isMember = true;
  #isBroughtUp = false;
  /** End of the lease of another daemon that is the member with the same data. */
  #othersUntil: string | null = null;
  #timer: Timer | null = null;
  #beating: Promise<void> | null = null;

  constructor(deps: LeaseDeps) {
    this.#deps = deps;
  }

  /** Starts beating; resolves after the first beat. Throws ConfigError if another daemon with the same data holds the lease. */
  async start(load: () => Load): Promise<void> {
    await this.#beatOnce(load);
    // The other daemon may have ended recently, with these data moved here: then it does not renew its lease.
    const until = this.#othersUntil;
    while (this.#othersUntil !== null) {
      if (this.#othersUntil !== until) {
        throw new ConfigError(
          `another daemon runs as ${this.#deps.member.host_id}, on a copy of this data: a host must run only once. Join with a new data_dir`,
        );
      }
      await sleep(LOOK_MS);
      await this.#beatOnce(load);
    }
    this.#timer = startInterval(() => void this.#beatOnce(load), BEAT_MS);
  }

  #beatOnce(load: () => Load): Promise<void> {
    this.#beating ??= this.#beat(load).finally(() => {
      this.#beating = null;
    });
    return this.#beating;
  }

  /** Whether the database was reachable within the duration of a lease. */
  get isFresh(): boolean {
    return monotonicMs() - this.#askedAt < LEASE_SECONDS * 1000;
  }

  /** Whether this daemon was the member at the last query. */
  get isMember(): boolean {
    return this.#isMember;
  }

  /** Lead of this host's clock over the database's; null: not yet known. */
  get aheadMs(): number | null {
    return this.#aheadMs;
  }

  of(hostId: string): Lease | undefined {
    return this.#known.get(hostId);
  }

  /** Stops the beats without releasing the lease. */
  leave(): void {
    stopTimer(this.#timer);
  }

  async stop(): Promise<void> {
    if (this.#timer === null) return;
    this.leave();
    await this.#beating;
    const { connections, member, holder } = this.#deps;
    // The lease belongs to another daemon, possibly on a copy of this daemon's data.
    if (holder.isOut) return;
    const values = [member.host_id, member.incarnation, holder.run];
    // Ends the lease now, so that other hosts see the end immediately.
    await connections.transaction((run) => run(END, values), END_MS).catch(() => {});
  }

  #note({ beat }: Beaten, attempted: string): void {
    const { holder } = this.#deps;
    holder.attempted = null;
    if (beat !== null) holder.acknowledged = { number: beat, id: attempted };
    holder.isOut = beat === null && holder.acknowledged !== null;
  }

  async #beat(load: () => Load): Promise<void> {
    const { connections, member, holder, version, log } = this.#deps;
    const askedAt = monotonicMs();
    try {
      const { run, place } = holder;
      const own = load();
      const before = wallMs();
      const { number = null, id } = holder.acknowledged ?? {};
      // A beat without an answer to its COMMIT is attempted again with the same value: the directory has it, or the previous one.
      holder.attempted ??= randomUUID();
      const { attempted } = holder;
      const mine = id === undefined ? [attempted] : [id, attempted];
      // A replaced daemon stays out until it restarts, even if the directory is restored to a state before the other daemon's beats.
      const holds = holder.isOut ? [0, []] : [number, mine];
      const values = [
        ...[member.host_id, member.incarnation, run, place, version, JSON.stringify(own), LEASE_SECONDS],
        ...[...holds, attempted],
      ];
      const { rows } = await connections.transaction(async (run) => {
        // A database created by an older version lacks the columns.
        if (!this.#isBroughtUp) await bringUp(run);
        return await run(BEAT, values);
      }, ASK_MS);
      this.#isBroughtUp = true;
      const leases = rows as unknown as (Lease & Beaten)[];
      if (leases[0]) this.#aheadMs = aheadMs({ before, after: wallMs() }, leases[0].database_ms);
      const isMember = leases[0]?.is_member ?? false;
      this.#othersUntil = leases[0]?.others_until ?? null;
      if (!isMember && this.#isMember)
        log.error("this host is no longer a member of its service", { host: member.host_id });
      this.#isMember = isMember;
      if (leases[0]) this.#note(leases[0], attempted);
      // The hosts of another service are irrelevant here.
      if (!isMember) return;
      // The statement sees the state before its update. A host that has joined and never run has no load yet.
      const known = leases.map((lease) => (lease.host_id === member.host_id ? { ...lease, load: own } : lease));
      const reported = known.filter(({ load }) => load.memory_mib !== undefined);
      this.#known = new Map(reported.map((lease) => [lease.host_id, lease]));
      this.#askedAt = askedAt;
    } catch (error) {
      // Its state is unknown now, and nothing waits for a database: the next answered beat decides.
      this.#othersUntil = null;
      const level = error instanceof DirectoryUnavailable ? "warn" : "error";
      log[level]("failed to read the leases of hosts", { error: describeError(error) });
    }
  }
}
