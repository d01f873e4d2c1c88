/** Names that a tool gives to its executions and messages, so that a later call continues with them and starts nothing twice. */
import { createHash } from "node:crypto";
import { newId } from "../../../shared/ids.ts";

/** An execution or a message. */
export type BegunKind = "exe" | "msg";

/** With an idempotency key the same for each retry; `place` is its scope, the API key first. */
export function nameOf(kind: BegunKind, idempotencyKey: string | undefined, place: readonly string[]): string {
  if (idempotencyKey === undefined) return newId(kind);
  const digest = createHash("sha256").update(JSON.stringify([...place, idempotencyKey]));
  return `${kind}_${digest.digest("hex").slice(0, 32)}`;
}
