/**
 * Identity of a host's daemon. Copied data remain those of one host: of the daemons with them, one is a member.
 *
 *   starting   takes the lease if its daemon has not beaten for the time of a lease, or has certainly ended: the data are at the same
 *              place, which one daemon can hold
 *   member     each beat swaps the random value of the previous one: a copy of this process, or one that was rolled back with its
 *              memory, has another one
 *   out        another daemon has beaten since: this one is no longer a member, until it is restarted
 */
import { randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { Run } from "./connections.ts";

export interface Member {
  cluster_id: string;
  host_id: string;
  /** Identity of this host's data; a copy of the data has another one. */
  incarnation: string;
  /** Incarnation under which the audit is anchored; absent: `incarnation`. */
  anchored_as?: string;
}

/** Identity that distinguishes a daemon from others with the same data. */
export interface MembershipLock {
  readonly run: string;
  /** Location of the daemon's data: boot ID, and device and inode of the member file. */
  readonly place: string;
  /** The daemon's last acknowledged beat; null: none since the start. */
  acknowledged: { number: number; id: string } | null;
  /** The value of a beat in progress, or of one with an unknown outcome: the cluster directory may have it. */
  attempted: string | null;
  /** Another daemon has beaten since. */
  isOut: boolean;
}

export function newMembershipLock(memberFile: string): MembershipLock {
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  const { dev, ino } = statSync(memberFile);
  return { run: randomUUID(), place: `${boot} ${dev} ${ino}`, acknowledged: null, attempted: null, isOut: false };
}

/** Condition on a lease under which the holder ($3: run, $4: place) may take it. */
export const MAY_TAKE = "(run = $3 OR place = $4 OR lease_until <= now())";

/** Whether a daemon is the current member, or may become it when it starts. Within a transaction. */
export async function holds(ask: Run, member: Member, holder: MembershipLock): Promise<boolean> {
  const { host_id, incarnation } = member;
  const { run, place, acknowledged, isOut } = holder;
  if (isOut) return false;
  const isIt = "host_id = $1 AND incarnation = $2 AND run = $3";
  const { rows } = await ask(`SELECT FROM roomd.leases WHERE ${isIt}`, [host_id, incarnation, run]);
  if (rows.length > 0) return true;
  if (acknowledged !== null) return false;
  const take = `UPDATE roomd.leases SET run = $3, place = $4 WHERE host_id = $1 AND incarnation = $2 AND ${MAY_TAKE} RETURNING host_id`;
  return (await ask(take, [host_id, incarnation, run, place])).rows.length > 0;
}
