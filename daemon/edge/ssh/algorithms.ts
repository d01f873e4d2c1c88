/**
 * Algorithms of the SSH gateway: nothing with SHA-1, CBC or NIST curves, and no finite-field key exchange, which blocks Bun for seconds to
 * minutes and could be requested by any client. Strict key exchange is built into ssh2. mlkem768x25519-sha256 precedes these key exchanges:
 * hybrid-exchange.ts.
 */
import type { Algorithms } from "ssh2";

export const ALGORITHMS = {
  kex: ["curve25519-sha256", "curve25519-sha256@libssh.org"],
  serverHostKey: ["ssh-ed25519"],
  // chacha20-poly1305 needs a cipher that Bun does not have.
  cipher: ["aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes256-ctr"],
  hmac: ["hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com"],
  compress: ["none"],
} as const satisfies Record<keyof Algorithms, readonly string[]>;

/** Signatures that a client's key may make. SHA-1, which the name `ssh-rsa` means, is not among them. */
export const SIGNATURES: readonly string[] = [
  "ssh-ed25519",
  "ecdsa-sha2-nistp256",
  "ecdsa-sha2-nistp384",
  "ecdsa-sha2-nistp521",
  "rsa-sha2-256",
  "rsa-sha2-512",
];
