/** Facts that a verb adds to the audit record of a call. */
export interface AuditFacts {
  /** Replaces the operation's event name. */
  event?: string;
  room_id?: string;
  room_uid?: string;
  agent_id?: string;
  sandbox_id?: string;
  details: Record<string, unknown>;
}
