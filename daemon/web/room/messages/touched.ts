/** Owns which records of a room may change what became of a message. Pure. */
import type { AuditRecord } from "../../../../shared/api/audit.ts";

/** An agent that reads its inbox says nothing of what it got: it may have been this one. */
export function isTouched(
  messageId: string,
  { event, agent_id, details }: Pick<AuditRecord, "event" | "agent_id" | "details">,
): boolean {
  if (event === "message.read") return agent_id !== null;
  return event.startsWith("message.") && (details.message_id === messageId || details.reply_to === messageId);
}
