/** An audit record before it has a position in a chain. */
import type { AuditRecord, Source } from "../../../shared/api/audit.ts";

/** The recorded event. */
export interface AuditEntry {
  event: string;
  outcome: AuditRecord["outcome"];
  at: string;
  org_id: string | null;
  room_id?: string | undefined;
  room_uid?: string | undefined;
  agent_id?: string | undefined;
  sandbox_id?: string | undefined;
  actor: { type: string; id: string; name: string };
  source: Source;
  request_id?: string | undefined;
  ip?: string | null | undefined;
  status?: number | undefined;
  error_code?: string | undefined;
  duration_ms?: number | undefined;
  details: Record<string, unknown>;
}
