/**
 * Commit at the end of a call: its audit record and, with an Idempotency-Key, its response. A verb may store both in its own transaction.
 * Records of read-only calls are written in batches.
 */
import type { Operation } from "../../../shared/api/contract.ts";
import type { SessionId } from "../../../shared/ids.ts";
import type { AuditFacts } from "../../core/call/audit-facts.ts";
import type { StartedWork } from "../../core/call/call-effects.ts";
import { actorOf, type Caller } from "../../core/call/operation.ts";
import type { Log } from "../../core/log.ts";
import { ownerOf } from "../../core/loop/index.ts";
import type { Queries } from "../../db/client.ts";
import { locally } from "../../db/dry-run.ts";
import type { Database } from "../../db/transact.ts";
import { type AuditEntry, appendAudit, appendAudits } from "../../domain/audit/index.ts";
import type { IdempotencyStore } from "./idempotency-step.ts";
import type { Claimed } from "./phase.ts";
import type { Placement } from "./placement.ts";
import type { RateRefusals } from "./rate-refusals.ts";
import { durationOf, type Keeper, type Outcome, type RequestContext, statusOf } from "./request-context.ts";

/** Maximum delay of the records of read-only calls, and maximum number per write, which takes a millisecond. */
const READINGS_MS = 20;
const MAX_READINGS = 128;

export interface AuditCommitDeps {
  database: Database;
  log: Log;
  /** Whether read-only calls are recorded. */
  auditReads: boolean;
  /** Throws proof_required unless the session's user has re-authenticated recently. */
  requireProof(queries: Queries, sessionId: SessionId): void;
  answers: IdempotencyStore;
  rateRefusals: RateRefusals;
  placement: Pick<Placement, "requireFirst">;
}

/** A call's end in its record. */
type CallEnd = { kind: "done"; status: number } | Extract<Outcome, { kind: "problem" }>;

export class AuditCommit implements Keeper {
  readonly #deps: AuditCommitDeps;
  /** Unwritten records of read-only calls. */
  #readings: AuditEntry[] = [];

  constructor(deps: AuditCommitDeps) {
    this.#deps = deps;
  }

  note(claim: Claimed, started: StartedWork): void {
    this.#deps.answers.note(claim, started);
  }

  async noteFirst(claim: Claimed, started: StartedWork): Promise<void> {
    await this.#deps.database.commit(() => this.note(claim, started), false);
  }

  requireKept(context: RequestContext): void {
    this.#deps.placement.requireFirst(context);
    const session = context.operation.wantsProof && context.call.caller?.session;
    // The proof may have expired while the body arrived slowly.
    if (session) this.#deps.requireProof(this.#deps.database.queries, session.session_id);
  }

  locally(step: () => void): void {
    locally(this.#deps.database.queries, step);
  }

  keep(
    context: RequestContext,
    outcome: string,
    body: object,
    each: readonly AuditFacts[] = [context.call.audit],
  ): void {
    const { database, answers } = this.#deps;
    const ended = { kind: "done", status: statusOf(context, outcome) } as const;
    if (this.#isRecorded(context.operation, context.call.caller)) {
      const entries = each.map((facts) => entryOf(context, ended, facts));
      appendAudits(database.queries, entries);
    }
    if (context.claim) answers.keepNow(context, context.claim, outcome, body);
  }

  undo(step: () => void): void {
    this.#deps.database.undo(step);
  }

  /** Resolves when everything that must precede the response is on disk; null if there is nothing to wait for, as for a read. */
  settle(context: RequestContext, reply: Outcome): Promise<void> | null {
    const isKept = context.phase.is === "kept";
    if (isKept && reply.kind === "done") return null;
    const { operation, request, call } = context;
    // If a call failed after its response was stored, that response remains.
    const claim = isKept ? null : context.claim;
    const { rateRefusals } = this.#deps;
    const isBeyondRate = context.rate?.isWithin === false && reply.kind === "problem";
    if (isBeyondRate && reply.problem.code === "rate_limited" && call.caller) {
      const { source, request_id, ip } = request;
      rateRefusals.note({ caller: call.caller, source, request_id, ip });
      return null;
    }
    const isRecorded = this.#isRecorded(operation, call.caller);
    if (!isRecorded && !claim) return null;
    const onlyReads = operation.method === "GET" && outcomeOf(reply) !== "denied";
    if (!onlyReads || context.hasAlong) return this.#write(context, reply, { claim, isRecorded, onlyReads });
    this.#read(entryOf(context, reply));
    return null;
  }

  async #write(
    context: RequestContext,
    reply: Outcome,
    kept: { claim: Claimed | null; isRecorded: boolean; onlyReads: boolean },
  ) {
    const { database, log, answers } = this.#deps;
    const { claim, isRecorded, onlyReads } = kept;
    const packed = claim ? await answers.pack(context, reply) : null;
    const { caller } = context.call;
    const write = (queries: Queries) => {
      if (isRecorded) appendAudit(queries, entryOf(context, reply));
      context.writeAlong();
      if (claim && packed) answers.keep(queries, claim, packed);
    };
    const about = caller ? ownerOf(caller.org_id) : "host";
    const written = database.commit(write, context.operation.method === "DELETE", about);
    // A reader need not wait for the record of its reading.
    if (onlyReads)
      written.catch((error: unknown) => log.error("failed to write an audit record", { error: String(error) }));
    else await written;
  }

  /** Writes the records of reads so far before the next commit. Never rejects. */
  async writeReadings(): Promise<void> {
    if (this.#readings.length > 0) await this.#deps.database.commitWithin(0, () => {}, "reads").catch(() => {});
  }

  #isRecorded(operation: Operation, caller: Caller | null): boolean {
    return operation.audit !== null && caller !== null && (operation.method !== "GET" || this.#deps.auditReads);
  }

  #read(entry: AuditEntry): void {
    // Thousands of waits may end together, before any of their records is written.
    if (this.#readings.length === MAX_READINGS) this.#readings = [];
    this.#readings.push(entry);
    if (this.#readings.length === MAX_READINGS) void this.writeReadings();
    if (this.#readings.length > 1) return;
    const together = this.#readings;
    const { database, log } = this.#deps;
    const write = (queries: Queries) => {
      if (this.#readings === together) this.#readings = [];
      appendAudits(queries, together);
    };
    const written = database.commitWithin(READINGS_MS, write, "reads");
    written.catch((error: unknown) => log.error("failed to write an audit record", { error: String(error) }));
  }
}

const outcomeOf = ({ kind, status }: Pick<CallEnd, "kind" | "status">): AuditEntry["outcome"] =>
  kind === "done" ? "success" : status === 401 || status === 403 ? "denied" : "error";

function entryOf(requestContext: RequestContext, ended: CallEnd, facts = requestContext.call.audit): AuditEntry {
  const { operation, call, at } = requestContext;
  const { caller } = call;
  if (!caller || operation.audit === null) throw new Error(`${operation.name} leaves no record`);
  const { context } = call.trace;
  return {
    event: facts.event ?? operation.audit,
    outcome: outcomeOf(ended),
    at,
    // The operator is of none.
    org_id: caller.org_id || null,
    room_id: facts.room_id,
    room_uid: facts.room_uid,
    agent_id: facts.agent_id,
    sandbox_id: facts.sandbox_id,
    actor: actorOf(caller),
    source: call.source,
    request_id: call.request_id,
    ip: call.ip,
    status: ended.status,
    error_code: ended.kind === "problem" ? ended.problem.code : undefined,
    duration_ms: Math.round(durationOf(requestContext) * 100) / 100,
    details: context ? { ...facts.details, trace_id: context.trace_id } : facts.details,
  };
}
