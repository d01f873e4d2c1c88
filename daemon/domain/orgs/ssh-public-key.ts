/** Accepted formats of public SSH keys, and their fingerprint as ssh-keygen shows it. */
import { createHash, createPublicKey } from "node:crypto";
import { type ParsedKey, utils } from "ssh2";

const ALGORITHMS = [
  "ssh-ed25519",
  "ecdsa-sha2-nistp256",
  "ecdsa-sha2-nistp384",
  "ecdsa-sha2-nistp521",
  "ssh-rsa",
] as const;
const LEAST_RSA_BITS = 2048;
const MAX_RSA_BITS = 16_384;

export interface PublicKey {
  algorithm: string;
  fingerprint: string;
  /** Algorithm and key, without the comment. */
  line: string;
  comment: string;
}

/** The key in a line, or its error. */
export function readPublicKey(text: string): PublicKey | { wrong: string } {
  const line = text.trim();
  if (line.includes("PRIVATE KEY")) {
    return { wrong: "The key is a private key. Keep it secret, and send the public key from the .pub file." };
  }
  if (/[\r\n]/.test(line)) return { wrong: "A public key must be one line." };
  const [algorithm = "", encoded = "", ...comment] = line.split(/\s+/);
  if (!ALGORITHMS.some((each) => each === algorithm)) {
    return { wrong: `The key must begin with one of ${ALGORITHMS.join(", ")}.` };
  }
  const parsed = parse(`${algorithm} ${encoded}`);
  if (!parsed || parsed.type !== algorithm || parsed.getPublicSSH().toString("base64") !== encoded) {
    return { wrong: `The key is not a valid public key of type ${algorithm}.` };
  }
  const bits = algorithm === "ssh-rsa" ? modulusBits(parsed) : LEAST_RSA_BITS;
  if (bits < LEAST_RSA_BITS || bits > MAX_RSA_BITS) {
    return { wrong: `An RSA key must have ${LEAST_RSA_BITS} to ${MAX_RSA_BITS} bits; the given key has ${bits}.` };
  }
  return {
    algorithm,
    fingerprint: fingerprintOf(parsed.getPublicSSH()),
    line: `${algorithm} ${encoded}`,
    comment: comment.join(" "),
  };
}

/** Fingerprint of a key in SSH's wire encoding. */
export function fingerprintOf(key: Buffer): string {
  return `SHA256:${createHash("sha256").update(key).digest("base64").replace(/=+$/, "")}`;
}

function parse(line: string): ParsedKey | null {
  const parsed = utils.parseKey(line);
  return parsed instanceof Error || Array.isArray(parsed) ? null : parsed;
}

function modulusBits(key: ParsedKey): number {
  return createPublicKey(key.getPublicPEM()).asymmetricKeyDetails?.modulusLength ?? 0;
}
