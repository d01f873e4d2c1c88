/** Configuration and injected dependencies of backups to an object store. */
import { type Config, ConfigError } from "../../core/config/config.ts";
import { secretIn } from "../../core/config/secret-file.ts";
import type { Log } from "../../core/log.ts";
import type { Credentials } from "./sign.ts";

export interface S3Plan {
  endpoint: URL;
  bucket: string;
  /** Prefix of each name, ending in /; may be empty. */
  prefix: string;
  credentials: Credentials;
  passphrase: string;
  /** Null: none is made unasked. */
  everyMs: number | null;
  /** Number of this host's backups to retain; 0: all. */
  keep: number;
  /** Whether each backup is read back after its upload. */
  readBack: boolean;
}

/** Minimum length of a passphrase: a shorter one could be guessed. */
const LEAST_PASSPHRASE = 16;

/** Null if no bucket is configured. Throws ConfigError. */
export function planBackups(config: Config): S3Plan | null {
  const bucket = config["backup.s3.bucket"];
  if (bucket === "") return null;
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket))
    throw new ConfigError(`backup.s3.bucket = ${JSON.stringify(bucket)}: must be a valid bucket name`);
  const passphrase = needed(config, "backup.s3.passphrase_file");
  if (passphrase.length < LEAST_PASSPHRASE)
    throw new ConfigError(
      `backup.s3.passphrase_file: the passphrase must have ${LEAST_PASSPHRASE} characters or more; \`openssl rand -base64 32\` generates one`,
    );
  const every = config["backup.s3.every"];
  return {
    endpoint: endpointOf(config["backup.s3.endpoint"]),
    bucket,
    prefix: prefixOf(config["backup.s3.prefix"]),
    credentials: {
      key_id: config["backup.s3.key_id"] || missing("backup.s3.key_id"),
      secret: needed(config, "backup.s3.secret_file"),
      region: config["backup.s3.region"],
    },
    passphrase,
    everyMs: every === 0 ? null : every * 1000,
    keep: config["backup.s3.keep"],
    readBack: config["backup.s3.read_back"],
  };
}

function endpointOf(text: string): URL {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol) && url.pathname === "/" && url.search === "") return url;
  throw new ConfigError(
    `backup.s3.endpoint = ${JSON.stringify(text)}: must be the http:// or https:// URL of the object store, without a path`,
  );
}

function prefixOf(text: string): string {
  const plain = text.replace(/^\/+|\/+$/g, "");
  if (/^[\w.=-]+(\/[\w.=-]+)*$/.test(plain) || plain === "") return plain === "" ? "" : `${plain}/`;
  throw new ConfigError(
    `backup.s3.prefix = ${JSON.stringify(text)}: letters, digits, and . _ - = between slashes only`,
  );
}

function needed(config: Config, key: "backup.s3.secret_file" | "backup.s3.passphrase_file"): string {
  return secretIn(config, key) ?? missing(key);
}

function missing(key: string): never {
  throw new ConfigError(`backup.s3.bucket is set, and ${key} is not`);
}

export interface BackupsDeps {
  plan: S3Plan | null;
  log: Log;
  /** File that stores the result of the last backup. */
  stateFile: string;
  /** Makes a backup in a separate process, and resolves with its result once nothing of that process remains. */
  make(signal: AbortSignal): Promise<{ failed: string } | { stored: Stored }>;
}

/** A backup in the object store. */
export interface Stored {
  name: string;
  size_bytes: number;
}
