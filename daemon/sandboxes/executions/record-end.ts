/** Owns the audit record of an execution's end that no call tells of. */
import type { ExecState } from "../../../shared/agent-protocol/messages.ts";
import { type AuditEntry, appendAudit, listAudit } from "../../audit/index.ts";
import { at, now } from "../../core/clock.ts";
import type { KeyCall } from "../../core/operation.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { redact } from "../../executions/redact.ts";
import type { SandboxRow } from "../table.ts";

const EVENT = "exec.finished";
/** Of one sandbox, since the execution began. */
const MOST_LOOKED_AT = 10_000;

/** Who began an execution. */
export type Beginner = Pick<AuditEntry, "actor" | "source" | "request_id" | "ip">;

export function beginnerOf({ caller, source, request_id, ip }: KeyCall): Beginner {
  return { actor: { type: "key", id: caller.key_id, name: caller.name }, source, request_id, ip };
}

const NOBODY: Beginner = { actor: { type: "system", id: "executions", name: "executions" }, source: "reconciler" };

export async function recordEnd(
  database: Database,
  row: SandboxRow,
  execution: ExecState,
  by: Beginner | null,
): Promise<void> {
  const { exec_id, argv, exit_code, signal, timed_out, stdout_bytes, stderr_bytes } = execution;
  await database.commit((queries) =>
    appendAudit(queries, {
      ...(by ?? NOBODY),
      event: EVENT,
      outcome: "success",
      at: now(),
      org_id: row.org_id,
      room_uid: row.room_uid,
      agent_id: row.agent_id,
      sandbox_id: row.sandbox_id,
      duration_ms: Math.max(0, (execution.finished_at_ms ?? 0) - execution.started_at_ms),
      details: { exec_id, argv: redact(argv), exit_code, signal, timed_out, stdout_bytes, stderr_bytes },
    }),
  );
}

/** Whether an earlier daemon has recorded it, and ended before it could say so. */
export function isRecorded(queries: Queries, row: SandboxRow, execution: ExecState): boolean {
  const records = listAudit(queries, {
    org_id: row.org_id,
    room_uid: row.room_uid,
    agent_id: row.agent_id,
    event: EVENT,
    since: at(execution.started_at_ms),
    order: "desc",
    limit: MOST_LOOKED_AT,
  });
  return records.some(
    ({ sandbox_id, details }) =>
      sandbox_id === row.sandbox_id && (JSON.parse(details) as { exec_id?: unknown }).exec_id === execution.exec_id,
  );
}
