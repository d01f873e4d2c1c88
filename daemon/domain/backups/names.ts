/**
 * Names of backups in an object store: PREFIX/HOST-20261127T095500123Z.roomd, so that each host recognizes its own, and names are unique.
 */
import type { S3Plan } from "./deps.ts";

const NAME = /^(.+)-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{3})Z\.roomd$/;

export interface BackupName {
  host_id: string;
  made_at: string;
}

export function nameOf(hostId: string, at: Date): string {
  return `${hostId}-${at.toISOString().replace(/[-:.]/g, "")}.roomd`;
}

/** Null if it is not the name of a backup. */
export function readName(name: string): BackupName | null {
  const found = NAME.exec(name);
  if (!found) return null;
  const [, host_id = "", year, month, day, hour, minute, second, ms] = found;
  return { host_id, made_at: `${year}-${month}-${day}T${hour}:${minute}:${second}.${ms}Z` };
}

export const keyOf = ({ prefix }: Pick<S3Plan, "prefix">, name: string): string => `${prefix}${name}`;

/** Prefix of the closed days of a host's audit. */
export const daysPrefix = ({ prefix }: Pick<S3Plan, "prefix">, hostId: string): string => `${prefix}audit/${hostId}/`;

/** Name of the backup with this key; null for keys that are not directly below the prefix. */
export function nameIn({ prefix }: Pick<S3Plan, "prefix">, key: string): string | null {
  return key.startsWith(prefix) && !key.slice(prefix.length).includes("/") ? key.slice(prefix.length) : null;
}

export const urlOf = ({ bucket, prefix }: Pick<S3Plan, "bucket" | "prefix">, name: string): string =>
  `s3://${bucket}/${prefix}${name}`;

/** Null if it is not the URL of an object. */
export function readUrl(text: string): { bucket: string; key: string } | null {
  const found = /^s3:\/\/([a-z0-9][a-z0-9.-]+)\/(.+)$/.exec(text);
  return found ? { bucket: String(found[1]), key: String(found[2]) } : null;
}
