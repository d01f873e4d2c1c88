/**
 * Owns which daemon a host is. Data that were copied are one host's all the same: of the daemons with them one is a member. Another takes its
 * place where it has said nothing for the time of a lease, or has ended for certain: the data lie at the same place, which one daemon can hold.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { Run } from "./connections.ts";

export interface Member {
  cluster_id: string;
  host_id: string;
  /** Of this host's data: a copy of it is another. */
  incarnation: string;
}

/** A daemon as it is told from others with the same data. */
export interface Holder {
  run: string;
  /** Where its data lie. */
  place: string;
}

export function newHolder(memberFile: string): Holder {
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  const { dev, ino } = statSync(memberFile);
  return { run: randomUUID(), place: `${boot} ${dev} ${ino}` };
}

/** Of a lease, with the holder as $3 and $4. */
export const MAY_TAKE = "(run = $3 OR place = $4 OR lease_until <= now())";

/** Whether a daemon is the one that is a member, which it may become. Within a transaction. */
export async function holds(ask: Run, { host_id, incarnation }: Member, { run, place }: Holder): Promise<boolean> {
  const isIt = "host_id = $1 AND incarnation = $2 AND run = $3";
  const { rows } = await ask(`SELECT FROM roomd.leases WHERE ${isIt}`, [host_id, incarnation, run]);
  if (rows.length > 0) return true;
  const take = `UPDATE roomd.leases SET run = $3, place = $4 WHERE host_id = $1 AND incarnation = $2 AND ${MAY_TAKE} RETURNING host_id`;
  return (await ask(take, [host_id, incarnation, run, place])).rows.length > 0;
}
