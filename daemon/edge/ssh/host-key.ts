/** Owns the gateway's own key: made once, kept in the data directory, recognised by its fingerprint. */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type ParsedKey, utils } from "ssh2";
import { errnoOf } from "../../core/service-error.ts";

export interface HostKey {
  /** In OpenSSH's format. */
  privateKey: string;
  /** As ssh shows it at the first connection. */
  fingerprint: string;
}

/** Reads the key, after making it where there is none. Two that start at once agree on one. */
export function loadHostKey(file: string): HostKey {
  if (!existsSync(file)) makeHostKey(file);
  const privateKey = readFileSync(file, "utf8");
  const parsed = parse(privateKey);
  if (!parsed) {
    throw new Error(`${file} is not the host key that was written there: put it back from a copy, or remove it`);
  }
  const digest = createHash("sha256").update(parsed.getPublicSSH()).digest("base64");
  return { privateKey, fingerprint: `SHA256:${digest.replace(/=+$/, "")}` };
}

function parse(privateKey: string): ParsedKey | null {
  const parsed = utils.parseKey(privateKey);
  return parsed instanceof Error || Array.isArray(parsed) || !parsed.isPrivateKey() ? null : parsed;
}

/** A new private key, in OpenSSH's format. */
export function newPrivateKey(): string {
  let made: string;
  // ssh2 1.17 spoils one in some hundred, of those whose bytes begin with zero.
  do made = utils.generateKeyPairSync("ed25519", { comment: "roomd" }).private;
  while (!parse(made));
  return made;
}

function makeHostKey(file: string): void {
  const unfinished = `${file}.${randomUUID()}`;
  writeFileSync(unfinished, newPrivateKey(), { mode: 0o600 });
  try {
    linkSync(unfinished, file);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  } finally {
    rmSync(unfinished);
  }
}
