/**
 * Owns what is known of whether hosts run: each says so again and again, by the database's clock, and hears of the others in the same
 * statement. What is known is kept while the database is away, and is as old as it is then.
 */
import type { Log } from "../core/log.ts";
import { describeError } from "../core/service-error.ts";
import { DirectoryAway } from "./away.ts";
import type { Connections } from "./connections.ts";
import type { Member } from "./rounds.ts";

const BEAT_MS = 3_000;
const LEASE_SECONDS = 20;
/** Of one beat: a lease outlasts several that fail. */
const ASK_MS = 5_000;

/** What a host has to give, and has given. */
export interface Load {
  /** What guests were promised, and what they may be promised. */
  memory_mib: { promised: number; total: number };
  cpus: number;
  rooms: number;
  sandboxes: number;
  /** Whether its last starts of sandboxes failed for reasons of its own. */
  is_degraded: boolean;
  templates: readonly string[];
}

export interface Lease {
  host_id: string;
  version: string;
  /** Whether it had said so lately when it was last asked. */
  is_alive: boolean;
  load: Load;
}

const BEAT = `
  WITH mine AS (
    UPDATE roomd.leases SET version = $3, load = $4::json, lease_until = now() + make_interval(secs => $5)
     WHERE host_id = $1 AND incarnation = $2 RETURNING host_id)
  SELECT host_id, version, lease_until > now() OR host_id = $1 AS is_alive, load, EXISTS (SELECT FROM mine) AS is_member
    FROM roomd.leases`;

export interface LeaseDeps {
  connections: Connections;
  member: Member;
  version: string;
  log: Log;
}

export class Leases {
  readonly #deps: LeaseDeps;
  #known = new Map<string, Lease>();
  /** When it was last asked, by the monotonic clock. */
  #askedAt = Number.NEGATIVE_INFINITY;
  #isMember = true;
  #timer: Timer | null = null;
  #beating: Promise<void> | null = null;

  constructor(deps: LeaseDeps) {
    this.#deps = deps;
  }

  /** Begins; resolves after the first. */
  async start(load: () => Load): Promise<void> {
    const beat = () => void this.#beatOnce(load);
    this.#timer = setInterval(beat, BEAT_MS);
    await this.#beatOnce(load);
  }

  #beatOnce(load: () => Load): Promise<void> {
    this.#beating ??= this.#beat(load).finally(() => {
      this.#beating = null;
    });
    return this.#beating;
  }

  /** Whether the database was heard of lately. */
  get isFresh(): boolean {
    return performance.now() - this.#askedAt < LEASE_SECONDS * 1000;
  }

  of(hostId: string): Lease | undefined {
    return this.#known.get(hostId);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer ?? undefined);
    await this.#beating;
  }

  async #beat(load: () => Load): Promise<void> {
    const { connections, member, version, log } = this.#deps;
    const askedAt = performance.now();
    try {
      const values = [member.host_id, member.incarnation, version, JSON.stringify(load()), LEASE_SECONDS];
      const { rows } = await connections.transaction((run) => run(BEAT, values), ASK_MS);
      const leases = rows as unknown as (Lease & { is_member: boolean })[];
      const isMember = leases[0]?.is_member ?? false;
      if (!isMember && this.#isMember)
        log.error("this host is no member of its service any more", { host: member.host_id });
      this.#isMember = isMember;
      // One that has joined and has not run since has said nothing yet.
      const said = leases.filter(({ load }) => "memory_mib" in load);
      this.#known = new Map(said.map((lease) => [lease.host_id, lease]));
      this.#askedAt = askedAt;
    } catch (error) {
      const level = error instanceof DirectoryAway ? "warn" : "error";
      log[level]("the directory of hosts was not asked", { error: describeError(error) });
    }
  }
}
