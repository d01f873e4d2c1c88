/**
 * Owns labels, which nobody can guess, and the tokens of private ports. A token is made of its label and a key that lies in the
 * data directory: so it can be shown again, and neither it nor its hash is in the database.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { keptKey } from "../../core/kept-file.ts";

/** 130 bits, and letters that a host name may have. */
const LABEL_CHARACTERS = 26;
const LETTERS = "abcdefghijklmnopqrstuvwxyz234567";
const TOKEN_PREFIX = "ptk_";

export class PortTokens {
  readonly #key: Buffer;

  /** Reads the key, after making it where there is none. Throws when the file is not one that was written here. */
  constructor(file: string) {
    this.#key = keptKey(file);
  }

  of(label: string): string {
    return TOKEN_PREFIX + createHmac("sha256", this.#key).update(label).digest("base64url");
  }

  /** In a time that says nothing about where the two differ. */
  opens(token: string, label: string): boolean {
    return timingSafeEqual(digestOf(token), digestOf(this.of(label)));
  }
}

/** `{wish}-{random}`, or the random part alone; at most 58 characters, a host name's part may have 63. */
export function newLabel(wish: string | null): string {
  const random = Array.from(randomBytes(LABEL_CHARACTERS), (byte) => LETTERS[byte % LETTERS.length]).join("");
  return wish === null ? random : `${wish}-${random}`;
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
