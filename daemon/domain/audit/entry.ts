/** Owns what a record is before it has its place in a chain. */
import type { AuditRecord, Source } from "../../../shared/api/audit.ts";

/** What happened. */
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
