/**
 * Unguessable labels, and the tokens of private ports. A token is derived from its label and a key stored in the data directory: so it can
 * be shown again, and neither it nor its hash is in the database.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { durableKey } from "../../core/config/durable-file.ts";

/** 130 bits, with letters that are allowed in a host name. */
const LABEL_CHARACTERS = 26;
const LETTERS = "abcdefghijklmnopqrstuvwxyz234567";
const TOKEN_PREFIX = "ptk_";

export class PortTokens {
  readonly #key: Buffer;

  /** Reads the key, creating it if absent. Throws if the file was not written by this class. */
  constructor(file: string) {
    this.#key = durableKey(file);
  }

  of(label: string): string {
    return TOKEN_PREFIX + createHmac("sha256", this.#key).update(label).digest("base64url");
  }

  /** Constant-time comparison. */
  opens(token: string, label: string): boolean {
    return timingSafeEqual(digestOf(token), digestOf(this.of(label)));
  }
}

/** `{wish}-{random}`, or the random part alone; at most 58 characters, since a label of a host name may have 63. */
export function newLabel(wish: string | null): string {
  const random = Array.from(randomBytes(LABEL_CHARACTERS), (byte) => LETTERS[byte % LETTERS.length]).join("");
  return wish === null ? random : `${wish}-${random}`;
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
