/** Selects the records of a room that may change a message's delivery state. Pure. */
import type { AuditRecord } from "../../../../shared/api/audit.ts";

/** The record of an inbox read does not list the messages: this one may be among them. */
export function isTouched(
  messageId: string,
  { event, agent_id, details }: Pick<AuditRecord, "event" | "agent_id" | "details">,
): boolean {
  if (event === "message.read") return agent_id !== null;
  return event.startsWith("message.") && (details.message_id === messageId || details.reply_to === messageId);
}
