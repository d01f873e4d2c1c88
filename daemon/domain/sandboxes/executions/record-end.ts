/** Audit record of an execution's end that no call records, and lookup of earlier executions in the audit. */
import type { ExecState } from "../../../../shared/agent-protocol/messages.ts";
import type { Source } from "../../../../shared/api/audit.ts";
import type { KeyCall } from "../../../core/call/operation.ts";
import { NO_SPAN, type Span } from "../../../core/call/traces.ts";
import { now } from "../../../core/clock.ts";
import { loopTime, ownerOf, Pieces } from "../../../core/loop/index.ts";
import { inPieces } from "../../../core/loop/steps.ts";
import type { Queries } from "../../../db/client.ts";
import { appendAudit, executionRecords } from "../../audit/index.ts";
import type { SandboxDeps } from "../deps.ts";
import { placeOf } from "../metering.ts";
import type { SandboxRow } from "../table.ts";
import type { Beginner, TrackedExecution } from "./registry.ts";
import { redact } from "./run/redact.ts";
import type { CommandRequest } from "./run/request.ts";
import { endSpan } from "./span.ts";

const EVENT = "exec.finished";

export function beginnerOf(call: KeyCall, { start }: CommandRequest, span: Span): Beginner {
  const { caller, source, request_id, ip, trace } = call;
  const actor = { type: "key", id: caller.key_id, name: caller.name };
  return { actor, source, request_id, ip, argv: redact(start.argv), span, trace_id: trace.context?.trace_id };
}

const NOBODY = {
  actor: { type: "system", id: "executions", name: "executions" },
  source: "reconciler",
  ...{ argv: null, span: NO_SPAN, trace_id: undefined },
} as const;

export async function recordEnd(
  { database, meter }: Pick<SandboxDeps, "database" | "meter">,
  row: SandboxRow,
  execution: ExecState,
  { by, duties }: Pick<TrackedExecution, "by" | "duties">,
): Promise<void> {
  const { exec_id, exit_code, signal, timed_out, oom, stdout_bytes, stderr_bytes } = execution;
  const ending = { exit_code, signal, timed_out, ...(oom && { oom }) };
  const { argv, span, trace_id, ...beginner } = by ?? NOBODY;
  const duration_ms = Math.max(0, (execution.finished_at_ms ?? 0) - execution.started_at_ms);
  endSpan(span, { ...execution, duration_ms });
  // Without a known starter, the argv reported by the guest is recorded as `told_argv`.
  const command = argv ? { argv } : { told_argv: redact(execution.argv) };
  await database.commit((queries) => {
    appendAudit(queries, {
      ...beginner,
      event: EVENT,
      outcome: "success",
      at: now(),
      org_id: row.org_id,
      room_uid: row.room_uid,
      agent_id: row.agent_id,
      sandbox_id: row.sandbox_id,
      duration_ms,
      details: { exec_id, ...command, ...ending, stdout_bytes, stderr_bytes, ...inTrace(trace_id) },
    });
    if (duties.meters === "end") meter.count(placeOf(row, by?.actor.id ?? ""), { exec_count: 1 });
  });
}

/** The sandbox was rolled back: the execution has not exited, and no longer exists. */
export async function recordRolledBack(
  { database }: Pick<SandboxDeps, "database">,
  { org_id, room_uid, agent_id, sandbox_id }: SandboxRow,
  exec_id: string,
  { by }: Pick<TrackedExecution, "by">,
): Promise<void> {
  const { argv, span, trace_id, ...beginner } = by ?? NOBODY;
  span.end({ problem: "rolled_back", attributes: { "roomd.exec_id": exec_id } });
  const command = argv ? { argv } : {};
  const details = { exec_id, ...command, exit_code: null, signal: null, rolled_back: true, ...inTrace(trace_id) };
  await database.commit((queries) => {
    const place = { org_id, room_uid, agent_id, sandbox_id };
    appendAudit(queries, { ...beginner, ...place, event: EVENT, outcome: "success", at: now(), details });
  });
}

/** Whether a record from before a moment, or one of a call that left it running, has metered an execution. */
export async function wasMetered(queries: Queries, row: SandboxRow, execId: string, before: string): Promise<boolean> {
  const { begun, finished } = await recordsOf(queries, row, [execId]);
  return begun.get(execId)?.isMetered === true || (finished.get(execId) ?? before) < before;
}

/**
 * For these executions: the starter of those in the background, and whether the start's record has metered it; and recorded ends, with the
 * time of the first record. One walk for all, in pieces of the event loop.
 */
export async function recordsOf(queries: Queries, row: SandboxRow, execIds: readonly string[]) {
  const pieces = new Pieces(loopTime, ownerOf(row.org_id), "audit");
  const records = await inPieces(executionRecords(queries, row, execIds), pieces);
  const begun = new Map<string, { by: Beginner; isMetered: boolean; since: string }>();
  const finished = new Map<string, string>();
  for (const { event, exec_id, at, actor, details, ...record } of records) {
    if (event === EVENT) {
      if (!finished.has(exec_id)) finished.set(exec_id, at);
    } else {
      const source = record.source as Source;
      const request_id = record.request_id ?? undefined;
      const { by, isMetered = false, since = at } = begun.get(exec_id) ?? {};
      begun.set(exec_id, {
        by: by ?? { actor, source, request_id, ip: record.ip, argv: argvOf(details), ...traceIn(details) },
        // A call that found it already started has metered nothing.
        isMetered: isMetered || details.existing !== true,
        since,
      });
    }
  }
  return { begun, finished };
}

const inTrace = (trace_id: string | undefined) => (trace_id === undefined ? {} : { trace_id });

function traceIn({ trace_id }: Record<string, unknown>): Pick<Beginner, "span" | "trace_id"> {
  return { span: NO_SPAN, ...(typeof trace_id === "string" ? { trace_id } : {}) };
}

function argvOf({ argv, command }: Record<string, unknown>): string[] {
  return Array.isArray(argv) ? argv.map(String) : ["/bin/sh", "-c", String(command)];
}
