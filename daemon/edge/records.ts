/**
 * Owns what is kept of a call that is over: its record in the audit, and with an Idempotency-Key its answer, in one commit. A verb
 * may keep both in its own transaction. Records of calls that only read are written some together.
 */
import type { Operation } from "../../shared/api/contract.ts";
import type { SessionId } from "../../shared/ids.ts";
import type { Directory } from "../cluster/directory.ts";
import { Elsewhere } from "../cluster/elsewhere.ts";
import type { AuditFacts } from "../core/audit-facts.ts";
import type { Log } from "../core/log.ts";
import { actorOf, type Caller } from "../core/operation.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Begun } from "../core/work.ts";
import type { Queries } from "../db/client.ts";
import { locally } from "../db/rehearsal.ts";
import type { Database } from "../db/transact.ts";
import { type AuditEntry, appendAudit, appendAudits } from "../domain/audit/index.ts";
import type { Answers } from "./answers.ts";
import type { Claimed } from "./phase.ts";
import type { RateRefusals } from "./rate-refusals.ts";
import { durationOf, type Keeper, type Outcome, statusOf, type Walk } from "./walk.ts";

/** How long the records of calls that only read may wait, and how many of them are one write: a millisecond. */
const READINGS_MS = 20;
const MOST_READINGS = 128;

export interface RecordDeps {
  database: Database;
  log: Log;
  /** Whether calls that only read are recorded. */
  auditReads: boolean;
  /** Whether a session's person has proven to be that person lately. Throws proof_required. */
  requireProof(queries: Queries, sessionId: SessionId): void;
  answers: Answers;
  rateRefusals: RateRefusals;
  doneBy: Directory["doneBy"];
}

/** What a record says of how a call ended. */
type Ended = { kind: "done"; status: number } | Extract<Outcome, { kind: "problem" }>;

export class Records implements Keeper {
  readonly #deps: RecordDeps;
  /** Of calls that only read, until they are written. */
  #readings: AuditEntry[] = [];

  constructor(deps: RecordDeps) {
    this.#deps = deps;
  }

  note(claim: Claimed, begun: Begun): void {
    this.#deps.answers.note(claim, begun);
  }

  async noteFirst(claim: Claimed, begun: Begun): Promise<void> {
    await this.#deps.database.commit(() => this.note(claim, begun), false);
  }

  requireKept(walk: Walk): void {
    this.#requireFirst(walk);
    const session = walk.operation.wantsProof && walk.call.caller?.session;
    // Its body may have come slowly.
    if (session) this.#deps.requireProof(this.#deps.database.queries, session.session_id);
  }

  /** What has changed what hosts share is done once on all of them; what is in a room is its host's alone. */
  #requireFirst({ claim, request }: Walk): void {
    if (!claim || request.params.room_id !== undefined) return;
    const by = this.#deps.doneBy(this.#deps.database.queries, claim.call);
    if (by === null) return;
    if (by !== "here") throw new Elsewhere(by);
    throw new ServiceError("history_gone", {
      detail: "The same call was carried out before, and its answer was lost as the service ended.",
    });
  }

  locally(step: () => void): void {
    locally(this.#deps.database.queries, step);
  }

  keep(walk: Walk, outcome: string, body: object, each: readonly AuditFacts[] = [walk.call.audit]): void {
    const { database, answers } = this.#deps;
    const ended = { kind: "done", status: statusOf(walk, outcome) } as const;
    if (this.#isRecorded(walk.operation, walk.call.caller)) {
      const entries = each.map((facts) => entryOf(walk, ended, facts));
      appendAudits(database.queries, entries);
    }
    if (walk.claim) answers.keepNow(walk, walk.claim, outcome, body);
  }

  undo(step: () => void): void {
    this.#deps.database.undo(step);
  }

  /** Resolves once what must be kept before the call is answered is on disk; of a reading there is nothing to wait for. */
  settle(walk: Walk, reply: Outcome): Promise<void> | null {
    const isKept = walk.phase.is === "kept";
    if (isKept && reply.kind === "done") return null;
    const { operation, request, call } = walk;
    // Of one that failed after it was kept the answer stays.
    const claim = isKept ? null : walk.claim;
    const { rateRefusals } = this.#deps;
    const isBeyondRate = walk.rate?.isWithin === false && reply.kind === "problem";
    if (isBeyondRate && reply.problem.code === "rate_limited" && call.caller) {
      const { source, request_id, ip } = request;
      rateRefusals.note({ caller: call.caller, source, request_id, ip });
      return null;
    }
    const isRecorded = this.#isRecorded(operation, call.caller);
    if (!isRecorded && !claim) return null;
    const onlyReads = operation.method === "GET" && outcomeOf(reply) !== "denied";
    if (!onlyReads || walk.hasAlong) return this.#write(walk, reply, { claim, isRecorded, onlyReads });
    this.#read(entryOf(walk, reply));
    return null;
  }

  async #write(walk: Walk, reply: Outcome, kept: { claim: Claimed | null; isRecorded: boolean; onlyReads: boolean }) {
    const { database, log, answers } = this.#deps;
    const { claim, isRecorded, onlyReads } = kept;
    const packed = claim ? await answers.pack(walk, reply) : null;
    const written = database.commit((queries) => {
      if (isRecorded) appendAudit(queries, entryOf(walk, reply));
      walk.writeAlong();
      if (claim && packed) answers.keep(queries, claim, packed);
    }, walk.operation.method === "DELETE");
    // A reader need not wait for the record of its reading.
    if (onlyReads) written.catch((error: unknown) => log.error("audit not written", { error: String(error) }));
    else await written;
  }

  /** Has what was read so far written before what is committed next. Never rejects. */
  async writeReadings(): Promise<void> {
    if (this.#readings.length > 0) await this.#deps.database.commitWithin(0, () => {}, true).catch(() => {});
  }

  #isRecorded(operation: Operation, caller: Caller | null): boolean {
    return operation.audit !== null && caller !== null && (operation.method !== "GET" || this.#deps.auditReads);
  }

  #read(entry: AuditEntry): void {
    // Thousands of waits may end together, before any of their records is written.
    if (this.#readings.length === MOST_READINGS) this.#readings = [];
    this.#readings.push(entry);
    if (this.#readings.length === MOST_READINGS) void this.writeReadings();
    if (this.#readings.length > 1) return;
    const together = this.#readings;
    const { database, log } = this.#deps;
    const write = (queries: Queries) => {
      if (this.#readings === together) this.#readings = [];
      appendAudits(queries, together);
    };
    const written = database.commitWithin(READINGS_MS, write, true);
    written.catch((error: unknown) => log.error("audit not written", { error: String(error) }));
  }
}

const outcomeOf = ({ kind, status }: Pick<Ended, "kind" | "status">): AuditEntry["outcome"] =>
  kind === "done" ? "success" : status === 401 || status === 403 ? "denied" : "error";

function entryOf(walk: Walk, ended: Ended, facts = walk.call.audit): AuditEntry {
  const { operation, call, at } = walk;
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
    duration_ms: Math.round(durationOf(walk) * 100) / 100,
    details: context ? { ...facts.details, trace_id: context.trace_id } : facts.details,
  };
}
