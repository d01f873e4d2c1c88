/**
 * Owns how an answer with a secret is kept for a second call: encrypted by what is in the caller's own key, so that neither the
 * database nor a copy of it has anything to use. The same call comes with the same key, so it can be opened. Callers without a
 * key, as guests are, get theirs again from this daemon, not from the next.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { ServiceError } from "../core/service-error.ts";
import type { StoredReply } from "./idempotency.ts";

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const OWN_KEY = randomBytes(KEY_BYTES);
const PURPOSE = "roomd answer of an idempotent call";

export function seal(reply: StoredReply, authorization: string | null): StoredReply {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, sealingKey(authorization), nonce);
  const sealed = [cipher.update(JSON.stringify(reply.body ?? null), "utf8"), cipher.final()];
  return { ...reply, body: Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]).toString("base64") };
}

/** Refusals have no secret, and are kept as they are. Throws history_gone. */
export function openSealed(reply: StoredReply, authorization: string | null): StoredReply {
  if (typeof reply.body !== "string") return reply;
  const bytes = Buffer.from(reply.body, "base64");
  const decipher = createDecipheriv(CIPHER, sealingKey(authorization), bytes.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    const opened = [decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()];
    return { ...reply, body: JSON.parse(Buffer.concat(opened).toString("utf8")) as unknown };
  } catch (cause) {
    throw new ServiceError("history_gone", {
      detail: `The call with this Idempotency-Key was done, with status ${reply.status}. Its answer contained a secret and cannot be shown again.`,
      details: { status: reply.status },
      cause,
    });
  }
}

/** An API key has 256 bits of chance, so nothing slower is needed to derive another from it. */
function sealingKey(authorization: string | null): Buffer {
  const key = /(\S+) *$/.exec(authorization ?? "")?.[1];
  return key === undefined ? OWN_KEY : Buffer.from(hkdfSync("sha256", key, "", PURPOSE, KEY_BYTES));
}
