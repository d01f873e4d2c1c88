/** Owns the names that a tool gives to what it begins, so that a later call goes on with it and begins nothing twice. */
import { createHash } from "node:crypto";
import { newId } from "../../../shared/ids.ts";

/** An execution or a message. */
export type BegunKind = "exe" | "msg";

/** Of a call with an idempotency key it is the same each time; `place` is where that counts, the API key first. */
export function nameOf(kind: BegunKind, idempotencyKey: string | undefined, place: readonly string[]): string {
  if (idempotencyKey === undefined) return newId(kind);
  const digest = createHash("sha256").update(JSON.stringify([...place, idempotencyKey]));
  return `${kind}_${digest.digest("hex").slice(0, 32)}`;
}
