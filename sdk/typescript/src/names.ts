/** Generated names of resources. The same idempotency key is the same call, also from another process: it yields the same names. */
import { createHash, randomInt, randomUUID } from "node:crypto";

/** Name of a resource created with this key; a random one without a key. */
export function nameOf(key: string | undefined): string {
  return `sdk-${key === undefined ? randomUUID() : digestOf(key)}`;
}

/** Name of a room: shown to people, so it is short if possible. */
export function roomNameOf(key: string | undefined): string {
  return key === undefined ? `sdk-${randomInt(2 ** 47).toString(36)}` : nameOf(key);
}

/** Digest of a key, equal to the Python SDK's. */
function digestOf(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 32);
}
