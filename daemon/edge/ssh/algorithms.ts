/**
 * Owns what the gateway offers: nothing with SHA-1, CBC or NIST's curves, and no exchange of keys over a finite field, which takes
 * Bun seconds to minutes in which nothing else is done: whoever connects could ask for it. Strict key exchange is ssh2's own.
 * mlkem768x25519-sha256 comes before these exchanges of keys: hybrid-exchange.ts.
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
