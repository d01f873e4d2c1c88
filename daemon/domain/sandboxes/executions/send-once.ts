/**
 * Owns what reaches a running command at most once under an Idempotency-Key: a signal, or input that names no offset. Nothing in the
 * guest tells whether it has come, so it is noted before it leaves, and the same call is told so instead of sending it again.
 */
import { ServiceError } from "../../../core/service-error.ts";
import type { Work } from "../../../core/work.ts";

/** Right before it leaves. Throws history_gone. */
export async function sendOnce(work: Work, hint: string): Promise<void> {
  if (work.begun) {
    throw new ServiceError("history_gone", {
      detail: "The call with this Idempotency-Key may have reached the command; how it ended is not known.",
      hint: `It is not sent again. ${hint}`,
    });
  }
  await work.noteFirst({ sent: 1 });
}
