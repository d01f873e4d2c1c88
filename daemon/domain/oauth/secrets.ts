/** Secrets of applications: codes and tokens of 256 bits; only their hash is stored. */
import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";

export type Prefix = "oac-" | "oat-" | "ort-" | "odc-";

export function makeSecret(prefix: Prefix): string {
  return prefix + randomBytes(32).toString("base64url");
}

/** Null if it cannot be such a secret. */
export function hashOf(prefix: Prefix, secret: string): string | null {
  return secret.startsWith(prefix) && /^[\w-]{43}$/.test(secret.slice(prefix.length)) ? sha256(secret) : null;
}

export const sha256 = (text: string): string => hash("sha256", text);

/**
 * A token's successor, derived from it and a stored salt: a holder of the token can receive its successor again, and a party that has only
 * one of the two cannot compute it.
 */
export function successorOf(prefix: Prefix, token: string, salt: string): string {
  return prefix + createHmac("sha256", salt).update(prefix).update(token).digest("base64url");
}

export const makeSalt = (): string => randomBytes(32).toString("base64url");

/** PKCE, S256 (RFC 7636). */
export function answersChallenge(verifier: string, challenge: string): boolean {
  if (!/^[\w.~-]{43,128}$/.test(verifier)) return false;
  const made = Buffer.from(hash("sha256", verifier, "buffer").toString("base64url"));
  const expected = Buffer.from(challenge);
  return made.length === expected.length && timingSafeEqual(made, expected);
}

/** No vowels, no similar-looking letters: people type it from another screen. */
const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";

/** Eight characters of LETTERS. */
export function makeUserCode(): string {
  let code = "";
  while (code.length < 8) {
    for (const byte of randomBytes(16)) {
      // 240 is the largest multiple of 20 in a byte.
      if (byte < 240 && code.length < 8) code += LETTERS[byte % LETTERS.length];
    }
  }
  return code;
}

/** Normalizes a typed code: any case, with a dash or spaces. */
export const readUserCode = (typed: string): string => typed.toUpperCase().replaceAll(/[^A-Z]/g, "");
export const shownUserCode = (code: string): string => `${code.slice(0, 4)}-${code.slice(4)}`;
