/**
 * At-most-once delivery to a running command under an Idempotency-Key: signals, and input without an offset. The guest cannot tell whether
 * it has received them, so a note is stored before sending, and a retry of the call gets an error instead of a second delivery.
 */

import type { CallEffects } from "../../../core/call/call-effects.ts";
import { ServiceError } from "../../../core/service-error.ts";

/** Call immediately before sending. Throws history_gone. */
export async function sendOnce(work: CallEffects, hint: string): Promise<void> {
  if (work.begun) {
    throw new ServiceError("history_gone", {
      detail: "The call with this Idempotency-Key may have reached the command; its outcome is unknown.",
      hint: `It is not sent again. ${hint}`,
    });
  }
  await work.noteFirst({ sent: 1 });
}
