/** A host's record of its own cluster membership: stored in data_dir after it has joined. */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { replaceDurable } from "../core/config/durable-file.ts";

export interface Membership {
  cluster_id: string;
  host_id: string;
  /** Identity of this data: a restored backup gets a new incarnation, which `roomd cluster rejoin` confirms. */
  incarnation: string;
  /** Incarnation of the data that was backed up, until the restored data is confirmed. */
  was?: string;
  /** The host's first incarnation, under which its audit is anchored; absent: `incarnation`. */
  anchored_as?: string;
}

export const memberFile = (directory: string) => join(directory, "member.json");

/** Null: it has not joined. */
export function readMembership(directory: string): Membership | null {
  const file = memberFile(directory);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Membership) : null;
}

export function writeMembership(directory: string, membership: Membership): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  replaceDurable(memberFile(directory), `${JSON.stringify(membership, null, 2)}\n`, 0o600);
}

/** Makes the data of a backup another incarnation than the original; no change if the host is no member. */
export function renewIncarnation(directory: string): boolean {
  const member = readMembership(directory);
  if (member === null) return false;
  const { incarnation, was = incarnation, anchored_as = incarnation, ...host } = member;
  writeMembership(directory, { ...host, incarnation: randomUUID(), was, anchored_as });
  return true;
}

/** Removes the record of a join that failed. */
export function forgetMembership(directory: string): void {
  rmSync(memberFile(directory), { force: true });
}
