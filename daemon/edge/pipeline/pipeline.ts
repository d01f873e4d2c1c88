/**
 * The pipeline that every request passes, whatever its transport:
 *
 *     key → scope → target → body → fields → rate → idempotency → verb → audit, and the response the same way back
 *
 * The order determines which error is returned first: 401, 403, 404, 413/415, 400, 422, 409, 429, 503. Every call with a key counts for the
 * key's rate; a call above the rate is only checked for errors of its own. The remains of a call for each failure are a table in phase.ts.
 */
import type { Operation } from "../../../shared/api/contract.ts";
import { errorKind, type Problem } from "../../../shared/api/errors.ts";
import type { OrgId } from "../../../shared/ids.ts";
import type { Host } from "../../cluster/directory.ts";
import { Elsewhere } from "../../cluster/elsewhere.ts";
import type { InFlightCall, InFlightCalls } from "../../core/call/in-flight-calls.ts";
import type { Bound, Caller } from "../../core/call/operation.ts";
import type { RequestCounts } from "../../core/call/request-counts.ts";
import type { Traces } from "../../core/call/traces.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Gather } from "../scatter-gather/gather.ts";
import { Admission } from "./admission.ts";
import { AuditCommit, type AuditCommitDeps } from "./audit-commit.ts";
import { Authentication, type AuthenticationDeps, type Credentials } from "./authentication.ts";
import { requireScope } from "./authorization.ts";
import { BatchLimit } from "./batch-limit.ts";
import { CallLifetime, discard, type Hold } from "./call-lifetime.ts";
import { Rates, type RatesOf } from "./caller-rate.ts";
import type { CallsBranch } from "./idempotency-branch.ts";
import { makeIdempotencyStore } from "./idempotency-step.ts";
import { retryAfterOf, toProblem } from "./problem.ts";
import type { Rate } from "./rate-limit.ts";
import { RateRefusals } from "./rate-refusals.ts";
import { makeInputReader } from "./read-input.ts";
import {
  doneAs,
  durationOf,
  type Outcome,
  type PipelineReply,
  type PipelineRequest,
  RequestContext,
} from "./request-context.ts";
import { callEnd } from "./span.ts";

export type { PipelineReply, PipelineRequest };

export interface PipelineDeps extends AuthenticationDeps {
  hold: Hold;
  /** Whether the disk has space for the operation's data. Throws disk_full. */
  requireSpace(operation: Operation): void;
  /** Whether read-only calls are recorded. */
  auditReads: boolean;
  requireProof: AuditCommitDeps["requireProof"];
  doneBy: AuditCommitDeps["doneBy"];
  rates: RatesOf;
  requests: RequestCounts;
  traces: Traces;
  /** Registry of calls in progress about a room; null: not needed. */
  roomCalls: Pick<InFlightCalls, "enter"> | null;
  /** Throws not_a_member for a call that changes data, on a host that is no longer a member. */
  requireMember(operation: Operation): void;
  /**
   * Throws cluster_unavailable for a call that changes a room of this host, before the host has read the shared directory since its start.
   */
  requireFollowed(operation: Operation): void;
  /** The other host that has the room; null: none. */
  elsewhere(orgId: OrgId, roomId: string): Promise<Host | null>;
  /** The other host that has issued a ticket; null: this one, or none. */
  makerOf(token: string): Host | null;
  /** The other host for a call about a resource that no host has yet; null: this one. Throws if no host can take it. */
  choose(operation: Operation, caller: Caller, input: Record<string, unknown>): Host | null;
  /** Answers calls that concern all hosts; null: there is one host. */
  gather: Gather | null;
}

export interface Pipeline {
  /** Walks the road. Never throws. */
  run(bound: Bound, request: PipelineRequest): Promise<PipelineReply>;
  /** For transports that answer before there is an operation: the refusal, an error of authenticate or rate_limited. Never throws. */
  identify(request: Credentials): { refusal: unknown; rate: Rate | null };
  /** The caller, if the rate is counted elsewhere. Throws as authenticate does. */
  recognise(request: Credentials): Caller;
  /** Before a password is compared. Throws rate_limited if the address has failed too often. */
  requireAttempt(ip: string | null): void;
  /** Admission of requests, for transports that answer by themselves. */
  begin: Admission;
  /** Resolves when the failed logins so far are on disk, which precedes their responses. Never rejects. */
  failuresWritten(): Promise<unknown>;
  /** Records the failures that were only counted so far. */
  stop(): void;
}

/** Adds the parts that transports do not use. */
export interface WholePipeline extends Pipeline {
  /** Branches guests' calls with an Idempotency-Key together with their room. */
  branch: CallsBranch;
}

export function makePipeline(deps: PipelineDeps): WholePipeline {
  const { database, log } = deps;
  const callers = new Authentication(deps);
  const readInput = makeInputReader();
  const rates = new Rates(deps.rates);
  const begin = new Admission();
  const many = new BatchLimit();
  const rateRefusals = new RateRefusals(database, log);
  const answers = makeIdempotencyStore(database);
  const records = new AuditCommit({ ...deps, answers, rateRefusals });

  /** The host that has the resource that is missing here, and the error to return. */
  const turnedTo = async (
    error: unknown,
    { call, request }: RequestContext,
  ): Promise<{ host: Host | null; told: unknown }> => {
    if (error instanceof Elsewhere) return { host: error.host, told: misdirected(error.host) };
    const room_id = request.params.room_id ?? request.params.source_room_id;
    const isMissing = error instanceof ServiceError && error.code === "room_not_found";
    if (!isMissing || !call.caller || room_id === undefined) return { host: null, told: error };
    // A key that is bound to other rooms does not learn which host has this one.
    if (call.caller.room_ids?.includes(room_id) === false) return { host: null, told: error };
    try {
      const host = await deps.elsewhere(call.caller.org_id, room_id);
      return { host, told: host ? misdirected(host) : error };
    } catch (unknown) {
      return { host: null, told: unknown };
    }
  };

  /** Data that a power cut may still undo is not returned. */
  const unflushedOf = ({ access }: Operation) =>
    access === "audit:read" ? database.unflushed() : database.unflushedChanges();

  async function run(bound: Bound, request: PipelineRequest): Promise<PipelineReply> {
    const { operation } = bound;
    let tenure: CallLifetime | null = null;
    let inRoom: InFlightCall | null = null;
    /** Aborts when the room moves before a body that the verb reads has arrived. */
    let unsent: AbortSignal | null = null;
    const signal = () => {
      const left = tenure?.signal ?? request.signal;
      return unsent ? AbortSignal.any([left, unsent]) : left;
    };
    const walk = new RequestContext(operation, request, records, { traces: deps.traces, signal });
    const { call } = walk;
    /** Awaits a promise, then charges loop time to the organization again. */
    const continued = async <T>(waited: Promise<T>): Promise<T> => {
      try {
        return await waited;
      } finally {
        if (call.caller) begin.goesOn(call.caller, operation.name);
      }
    };
    const refused = (error: unknown) => {
      const shown = ofWhoLeft(request.signal, error);
      return refusalOf(shown, toProblem(shown, request.request_id, log), walk);
    };
    /** If the other host has just handed the room on, the request is not redirected a second time. */
    const unlessMoved = (outcome: Outcome) =>
      outcome.status === MISDIRECTED ? { failure: new ServiceError("room_moving") } : outcome;
    let reply: Outcome | null = null;
    let leave = () => {};
    try {
      const maker = request.token !== null && request.forward ? deps.makerOf(request.token) : null;
      if (maker) throw new Elsewhere(maker);
      call.caller = callers.of(bound, request);
      if (call.caller) {
        walk.rate = request.rate === undefined ? rates.take(call.caller) : request.rate;
        // Callers without key or session are watched for revocation by the transport.
        const held = call.caller.session ?? (call.caller.kind || request.recognise ? null : call.caller.key_id);
        if (held !== null)
          tenure = new CallLifetime(
            deps.hold,
            held,
            () => request.signal,
            () => walk.phase.is === "kept",
          );
        const turn = begin.call(call.caller, operation.name, walk.rate?.isWithin ?? true, request.connection);
        if (turn) await turn;
        requireScope(call.caller, operation);
        deps.requireMember(operation);
        inRoom = enterRoom(deps.roomCalls, call.caller, request.params);
      }
      // Available results are not awaited: nearly every read-only call completes synchronously.
      const found = bound.find(call, request.params);
      const target = found instanceof Promise ? await continued(found) : found;
      if (inRoom) deps.requireFollowed(operation);
      const read =
        inRoom && hasFields(operation)
          ? inRoom.coming(async (over) => await readInput(bound, request, target, over))
          : readInput(bound, request, target);
      const { input, body_sha256 } = read instanceof Promise ? await continued(read) : read;
      tenure?.require();
      const chosen = call.caller && request.hop === undefined ? deps.choose(operation, call.caller, input) : null;
      if (chosen) throw new Elsewhere(chosen);
      const calls = callsIn(operation, input);
      const more = calls - 1 + bound.moreCalls(input, target);
      if (call.caller && more > 0) walk.rate = rates.takeMore(call.caller, walk.rate, more);
      rates.require(call.caller, walk.rate);
      if (call.caller && calls > 1) leave = await continued(many.enter(call.caller.org_id, calls));
      // A reader of the audit finds all earlier reads.
      if (operation.access === "audit:read") await continued(records.writeReadings());
      deps.requireSpace(operation);
      const claiming = answers.claim(walk, body_sha256);
      const { before, claim } = claiming instanceof Promise ? await continued(claiming) : claiming;
      if (before) {
        reply = before;
      } else {
        walk.work(claim);
        if (operation.method !== "GET") call.trace.starts();
        if (claim) await faultPoint("call.claimed");
        const own = (asked: Record<string, unknown>, transfer = request.transfer) => {
          if (!inRoom || operation.body !== "bytes") return bound.run(call, asked, target, transfer);
          return inRoom.coming(async (over) => {
            unsent = over;
            return await bound.run(call, asked, target, transfer);
          });
        };
        const onAll = deps.gather ? deps.gather.of(operation, call.caller, request) : null;
        const working = onAll ? onAll(input, own) : own(input);
        const done = working instanceof Promise ? await continued(tenure ? tenure.until(working) : working) : working;
        reply = doneAs(walk, done);
        if (claim) await faultPoint("call.worked");
      }
    } catch (error) {
      const { host, told } = await turnedTo(error, walk);
      // Work that its verb has started is not started again elsewhere; work done there is not done here.
      if (host && request.forward && (walk.phase.is === "arrived" || error instanceof Elsewhere)) {
        tenure?.end(null);
        walk.claim?.letGo();
        leave();
        inRoom?.leave();
        inRoom = null;
        // The other host runs the whole pipeline for it, and stores its records.
        const answered = await request.forward(host).then(unlessMoved, (failure: unknown) => ({ failure }));
        if (!("failure" in answered)) return { ...answered, rate: walk.rate };
        reply = refused(answered.failure);
      } else reply = refused(told);
    }
    // Its effects are on disk.
    leave();
    try {
      const settling = records.settle(walk, reply);
      if (settling) await continued(settling);
      const unflushed = call.caller && operation.method === "GET" ? unflushedOf(operation) : null;
      if (unflushed) await continued(unflushed);
      walk.settle(true);
    } catch (error) {
      // A response that cannot be recorded is not sent, but discarded.
      if (reply.kind === "done") discard(reply.done);
      reply = refused(error);
      walk.settle(false);
    }
    inRoom?.leave();
    const code = reply.kind === "problem" ? reply.problem.code : null;
    deps.requests.note(request.source, operation.name, reply.status, durationOf(walk), code);
    // Calls without a known caller export no span.
    if (call.caller) call.trace.end(() => callEnd(walk, reply));
    const done = reply.kind === "done" ? reply.done : null;
    const held = tenure ? tenure.end(done) : done;
    return reply.kind === "done" && held ? { ...reply, done: held, rate: walk.rate } : { ...reply, rate: walk.rate };
  }

  return {
    run,
    identify: (request) => {
      let rate: Rate | null = null;
      try {
        const caller = callers.identify(request);
        rate = rates.take(caller);
        if (rate?.isWithin === false) rateRefusals.note({ ...request, caller });
        rates.require(caller, rate);
        return { refusal: null, rate };
      } catch (refusal) {
        return { refusal, rate };
      }
    },
    recognise: (request) => callers.identify(request),
    requireAttempt: (ip) => callers.requireAttempt(ip),
    begin,
    failuresWritten: () => callers.failuresWritten,
    branch: answers.branch,
    stop: () => {
      callers.settle();
      rateRefusals.settle();
    },
  };
}

/** The error for a request that cannot be forwarded: another host has forwarded it, or the transport does not support it. */
function misdirected({ host_id, url }: Host): ServiceError {
  return new ServiceError("misdirected", {
    detail: `The room is on ${host_id}.`,
    details: { host: host_id, url },
    hint: `Ask ${url}.`,
  });
}

const MISDIRECTED = errorKind("misdirected").status;

/** Registers a call about a room as in flight until it is settled. */
function enterRoom(
  roomCalls: PipelineDeps["roomCalls"],
  { org_id }: Caller,
  { room_id, source_room_id }: Record<string, string>,
): InFlightCall | null {
  const named = room_id ?? source_room_id;
  return roomCalls && named !== undefined ? roomCalls.enter({ org_id, room_id: named }) : null;
}

const hasFields = ({ body }: Operation) => body !== null && body !== "bytes";

/** Number of calls that the call counts as. */
function callsIn({ many }: Operation, input: Record<string, unknown>): number {
  const list = many === undefined ? null : input[many];
  return Array.isArray(list) ? list.length : 1;
}

/** Work for a disconnected caller is aborted by the signal, which is not a bug; any other error still is. */
function ofWhoLeft({ aborted, reason }: AbortSignal, error: unknown): unknown {
  if (!aborted || error instanceof ServiceError) return error;
  // An MCP client may give its own reason.
  const isEnded = error === reason || (error instanceof Error && error.name === "AbortError");
  return isEnded ? new ServiceError("caller_left", { cause: error }) : error;
}

function refusalOf(error: unknown, problem: Problem, { effect }: RequestContext): Outcome {
  // On a full disk a caller must know whether its request took effect anyway.
  const details = problem.status === 507 && effect ? { ...problem.details, ...effect } : problem.details;
  const retry_after_seconds = retryAfterOf(error, problem);
  return {
    kind: "problem",
    status: problem.status,
    problem: { ...problem, details },
    retry_after_seconds,
    replayed: false,
  };
}
