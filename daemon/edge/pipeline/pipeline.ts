/**
 * The pipeline that every request passes, whatever its transport:
 *
 *     key → scope → target → body → fields → rate → idempotency → verb → audit, and the response the same way back
 *
 * The order determines which error is returned first: 401, 403, 404, 413/415, 400, 422, 409, 429, 503. Every call with a key counts for the
 * key's rate; a call above the rate is only checked for errors of its own. The remains of a call for each failure are a table in phase.ts.
 */
import type { Operation } from "../../../shared/api/contract.ts";
import type { Bound, Caller } from "../../core/call/operation.ts";
import type { RequestCounts } from "../../core/call/request-counts.ts";
import type { Traces } from "../../core/call/traces.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { ownerOf } from "../../core/loop/index.ts";
import { Admission } from "./admission.ts";
import { AuditCommit, type AuditCommitDeps } from "./audit-commit.ts";
import { Authentication, type AuthenticationDeps, type Credentials } from "./authentication.ts";
import { requireScope } from "./authorization.ts";
import { BatchLimit } from "./batch-limit.ts";
import { CallLifetime, discard, type Hold } from "./call-lifetime.ts";
import { Rates, type RatesOf } from "./caller-rate.ts";
import type { IdempotencyStore } from "./idempotency-step.ts";
import type { Input, Placement } from "./placement.ts";
import { refusalOf } from "./problem.ts";
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
  rates: RatesOf;
  requests: RequestCounts;
  answers: IdempotencyStore;
  traces: Traces;
  /** The hosts of the service. */
  placement: Placement;
}

export interface Pipeline {
  /** Carries out a call. Never throws. */
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

export function makePipeline(deps: PipelineDeps): Pipeline {
  const { answers, database, log } = deps;
  const callers = new Authentication(deps);
  const readInput = makeInputReader();
  const rates = new Rates(deps.rates);
  const begin = new Admission();
  const many = new BatchLimit();
  const rateRefusals = new RateRefusals(database, log);
  const records = new AuditCommit({ ...deps, rateRefusals });

  /** Awaits a promise, then charges loop time to the organization again. */
  const continued = async <T>({ call, operation }: RequestContext, waited: Promise<T>): Promise<T> => {
    try {
      return await waited;
    } finally {
      if (call.caller) begin.goesOn(call.caller, operation.name);
    }
  };

  /** Authenticates the caller and counts the call for its rate; resolves when the call may start, null: immediately. */
  const admit = (bound: Bound, context: RequestContext): Promise<void> | null => {
    const { request, call, operation } = context;
    const caller = callers.of(bound, request);
    call.caller = caller;
    if (!caller) return null;
    context.rate = request.rate === undefined ? rates.take(caller) : request.rate;
    // Callers without key or session are watched for revocation by the transport.
    const held = caller.session ?? (caller.kind || request.recognise ? null : caller.key_id);
    if (held !== null) {
      const isKept = () => context.phase.is === "kept";
      context.lifetime = new CallLifetime(deps.hold, held, () => request.signal, isKept);
    }
    return begin.call(caller, operation.name, context.rate?.isWithin ?? true, request.connection);
  };

  /** Counts the rest of a batch for the rate; resolves when the batch has its places; null: a single call. Throws rate_limited. */
  const queueBatch = (bound: Bound, context: RequestContext, input: Input, target: unknown) => {
    const { caller } = context.call;
    const calls = callsIn(bound.operation, input);
    const more = calls - 1 + bound.moreCalls(input, target);
    if (caller && more > 0) context.rate = rates.takeMore(caller, context.rate, more);
    rates.require(caller, context.rate);
    return caller && calls > 1 ? many.enter(caller.org_id, calls) : null;
  };

  /** Data that a power cut may still undo is not returned. */
  const unflushedFor = ({ call, operation }: RequestContext): Promise<unknown> | null => {
    if (!call.caller || operation.method !== "GET") return null;
    // Figures of the host are of all organizations.
    const owner = operation.openToHost ? "host" : ownerOf(call.caller.org_id);
    return database.unflushed(owner, operation.access === "audit:read");
  };

  /** The call is settled: counts it, ends its span, and returns its response. */
  const replied = (context: RequestContext, reply: Outcome): PipelineReply => {
    const { call, operation, request, lifetime, rate } = context;
    const code = reply.kind === "problem" ? reply.problem.code : null;
    deps.requests.note(request.source, operation.name, reply.status, durationOf(context), code);
    // Calls without a known caller export no span.
    if (call.caller) call.trace.end(() => callEnd(context, reply));
    const done = reply.kind === "done" ? reply.done : null;
    const held = lifetime ? lifetime.end(done) : done;
    return reply.kind === "done" && held ? { ...reply, done: held, rate } : { ...reply, rate };
  };

  // Available results are not awaited: nearly every read-only call completes synchronously.
  async function run(bound: Bound, request: PipelineRequest): Promise<PipelineReply> {
    const { operation } = bound;
    const context = new RequestContext(operation, request, records, deps.traces);
    const placed = deps.placement.begin(context);
    const { call } = context;
    let reply: Outcome;
    try {
      placed.requireIssuer();
      const turn = admit(bound, context);
      if (turn) await turn;
      if (call.caller) {
        requireScope(call.caller, operation);
        placed.enter(call.caller);
      }
      const found = bound.find(call, request.params);
      const target = found instanceof Promise ? await continued(context, found) : found;
      const read = placed.read((over) => readInput(bound, request, target, over));
      const { input, body_sha256 } = read instanceof Promise ? await continued(context, read) : read;
      context.lifetime?.require();
      if (call.caller) placed.requireHere(operation, call.caller, input);
      const queued = queueBatch(bound, context, input, target);
      if (queued) context.enterBatch(await continued(context, queued));
      // A reader of the audit finds all earlier reads.
      if (operation.access === "audit:read") await continued(context, records.writeReadings());
      deps.requireSpace(operation);
      const claiming = answers.claim(context, body_sha256);
      const { before, claim } = claiming instanceof Promise ? await continued(context, claiming) : claiming;
      if (before) reply = before;
      else {
        context.work(claim);
        if (claim) await faultPoint("call.claimed");
        const working = placed.run(input, (asked, transfer = request.transfer) =>
          bound.run(call, asked, target, transfer),
        );
        const done = working instanceof Promise ? await continued(context, context.until(working)) : working;
        reply = doneAs(context, done);
        if (claim) await faultPoint("call.worked");
      }
    } catch (error) {
      const forwarded = await placed.forward(error);
      if (!("failure" in forwarded)) return { ...forwarded, rate: context.rate };
      reply = refusalOf(context, forwarded.failure, log);
    }
    // Its effects are on disk.
    context.leaveBatch();
    try {
      const settling = records.settle(context, reply);
      if (settling) await continued(context, settling);
      const unflushed = unflushedFor(context);
      if (unflushed) await continued(context, unflushed);
      context.settle(true);
    } catch (error) {
      // A response that cannot be recorded is not sent, but discarded.
      if (reply.kind === "done") discard(reply.done);
      reply = refusalOf(context, error, log);
      context.settle(false);
    }
    placed.leave();
    return replied(context, reply);
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
    stop: () => {
      callers.settle();
      rateRefusals.settle();
    },
  };
}

/** Number of calls that the call counts as. */
function callsIn({ many }: Operation, input: Input): number {
  const list = many === undefined ? null : input[many];
  return Array.isArray(list) ? list.length : 1;
}
