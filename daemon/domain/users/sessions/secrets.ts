/** Secrets of people: 32 random bytes for a session or a link; only their hash is stored. */
import { hash, randomBytes } from "node:crypto";

const PATTERN = /^[\w-]{43}$/;

export function makeSecret(): { secret: string; sha256: string } {
  const secret = randomBytes(32).toString("base64url");
  return { secret, sha256: hash("sha256", secret) };
}

/** Null if it cannot be such a secret. */
export function hashOf(secret: string): string | null {
  return PATTERN.test(secret) ? hash("sha256", secret) : null;
}
