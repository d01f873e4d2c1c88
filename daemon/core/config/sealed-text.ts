/** Authenticated encryption of text in readable places, with a key stored elsewhere. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
export const SEAL_KEY_BYTES = 32;

/** Derives a key for one purpose from a secret with 256 bits of entropy; no slow key derivation is necessary. */
export function sealingKey(secret: string | Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", purpose, SEAL_KEY_BYTES));
}

/** In base64. `about` is authenticated but not stored, and must be given again to open it. */
export function sealText(key: Uint8Array, text: string, about = ""): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(about));
  const sealed = [cipher.update(text, "utf8"), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]).toString("base64");
}

/** Throws if it was sealed with another key or another `about`, or changed. */
export function openText(key: Uint8Array, sealed: string, about = ""): string {
  const bytes = Buffer.from(sealed, "base64");
  const [nonce, tag] = [bytes.subarray(0, NONCE_BYTES), bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)];
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(about));
  decipher.setAuthTag(tag);
  const opened = [decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()];
  return Buffer.concat(opened).toString("utf8");
}
