/**
 * Stored responses that contain a secret are encrypted with a key derived from the caller's own key, so that the database and its copies
 * contain nothing usable. A retry is sent with the same key and can decrypt it. For callers without a key, such as guests, only this daemon
 * can decrypt it, not the next.
 */
import { randomBytes } from "node:crypto";
import { openText, SEAL_KEY_BYTES, sealingKey, sealText } from "../../core/config/sealed-text.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { StoredReply } from "./idempotency-answers.ts";

const OWN_KEY = randomBytes(SEAL_KEY_BYTES);
const PURPOSE = "roomd answer of an idempotent call";

export function seal(reply: StoredReply, authorization: string | null): StoredReply {
  return { ...reply, body: sealText(keyOf(authorization), JSON.stringify(reply.body ?? null)) };
}

/** Refusals contain no secret and are stored unsealed. Throws history_gone. */
export function openSealed(reply: StoredReply, authorization: string | null): StoredReply {
  if (typeof reply.body !== "string") return reply;
  try {
    return { ...reply, body: JSON.parse(openText(keyOf(authorization), reply.body)) as unknown };
  } catch (cause) {
    throw new ServiceError("history_gone", {
      detail: `The call with this Idempotency-Key was executed, with status ${reply.status}. Its answer contained a secret and cannot be shown again.`,
      details: { status: reply.status },
      cause,
    });
  }
}

function keyOf(authorization: string | null): Buffer {
  const key = /(\S+) *$/.exec(authorization ?? "")?.[1];
  return key === undefined ? OWN_KEY : sealingKey(key, PURPOSE);
}
