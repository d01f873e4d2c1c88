/** Facts that a verb adds to the audit record of a call. */
export interface AuditFacts {
  /** In place of the operation's event. */
  event?: string;
  room_id?: string;
  room_uid?: string;
  agent_id?: string;
  sandbox_id?: string;
  details: Record<string, unknown>;
}
