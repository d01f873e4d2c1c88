/** The gateway's host key: created once, stored in the data directory, recognized by its fingerprint. */
import { createHash } from "node:crypto";
import { type ParsedKey, utils } from "ssh2";
import { readDurable } from "../../core/config/durable-file.ts";

export interface HostKey {
  /** In OpenSSH's format. */
  privateKey: string;
  /** Algorithm and key, as in a file known_hosts. */
  publicKey: string;
  /** As ssh shows it at the first connection. */
  fingerprint: string;
}

/** Reads the key, after creating it if absent. Two processes that start concurrently agree on one. */
export function loadHostKey(file: string): HostKey {
  const privateKey = readDurable(file, newPrivateKey).toString();
  const parsed = parse(privateKey);
  if (!parsed) {
    throw new Error(`${file} has changed since roomd wrote it: restore it from a copy, or remove it`);
  }
  const publicBytes = parsed.getPublicSSH();
  const publicKey = `${parsed.type} ${publicBytes.toString("base64")}`;
  const digest = createHash("sha256").update(publicBytes).digest("base64");
  return { privateKey, publicKey, fingerprint: `SHA256:${digest.replace(/=+$/, "")}` };
}

function parse(privateKey: string): ParsedKey | null {
  const parsed = utils.parseKey(privateKey);
  return parsed instanceof Error || Array.isArray(parsed) || !parsed.isPrivateKey() ? null : parsed;
}

/** A new private key, in OpenSSH's format. */
export function newPrivateKey(): string {
  let made: string;
  // ssh2 1.17 corrupts one key in a few hundred, of those with leading zero bytes.
  do made = utils.generateKeyPairSync("ed25519", { comment: "roomd" }).private;
  while (!parse(made));
  return made;
}
