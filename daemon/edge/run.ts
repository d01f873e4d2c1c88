/**
 * Owns the road that every request walks, whatever door it came in by:
 *
 *   key → scope → what it is about → body → fields → rate → idempotency → verb → audit, and the answer the same way back
 *
 * The order is the contract's order of errors: 401, 403, 404, 413/415, 400, 422, 409, 429, 503; but a call beyond the key's
 * rate, which every call with a key counts for, gets no further than to what is wrong with itself.
 */
import type { Source } from "../../shared/api/audit.ts";
import { type Access, DEFAULT_MAX_BODY_BYTES, type Operation } from "../../shared/api/contract.ts";
import type { Problem } from "../../shared/api/errors.ts";
import type { AuditEntry } from "../audit/index.ts";
import { appendAudit, appendAudits } from "../audit/index.ts";
import { now } from "../core/clock.ts";
import { faultPoint } from "../core/fault-points.ts";
import type { Log } from "../core/log.ts";
import type { Bound, Caller, Done, OpenCall, Transfer } from "../core/operation.ts";
import type { RequestCounts } from "../core/request-counts.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Database } from "../db/transact.ts";
import { FailedLogins } from "./failed-logins.ts";
import { type IdempotentCall, makeIdempotency, type PackedReply, packSmall, type StoredReply } from "./idempotency.ts";
import { brokenRules, type InputCheck, makeInputCheck } from "./input.ts";
import { LoginLimit } from "./login-limit.ts";
import { retryAfterOf, toProblem } from "./problem.ts";
import { type Rate, RateLimit, type RateLimits } from "./rate-limit.ts";
import { RateRefusals } from "./rate-refusals.ts";
import { requireScope } from "./scope.ts";
import { openSealed, seal } from "./seal.ts";
import { type HoldKey, Tenure } from "./tenure.ts";

/** A request as a door hands it over. */
export interface RoadRequest {
  source: Source;
  request_id: string;
  ip: string | null;
  /** Whether it comes from the host itself, with nobody between; absent: it does not. */
  readonly isFromHost?: boolean;
  /** The Authorization header, or null. */
  authorization: string | null;
  /** A token of the noun's own, for operations that take one instead of a key. */
  token: string | null;
  /** Who calls, where the door knows it by another way than the header. Throws as authenticate does. */
  recognise?(): Caller;
  /** The path as it was asked for: part of the idempotency scope. */
  path: string;
  params: Record<string, string>;
  /** Reads the query. Throws invalid_query. */
  query(): Record<string, string>;
  /** Reads the body's fields. Throws body_too_large, unsupported_media_type, invalid_json, invalid_body. */
  body(maxBytes: number): Promise<{ fields: Record<string, unknown>; sha256: string }>;
  idempotency_key: string | null;
  transfer: Transfer;
  signal: AbortSignal;
}

type Outcome =
  | { kind: "done"; status: number; done: Done<Operation>; location: string | null; replayed: boolean }
  | { kind: "problem"; status: number; problem: Problem; retry_after_seconds: number | null; replayed: boolean };

/** `rate` is what the call has left its key; null without a key, and where there is no limit. */
export type RoadReply = Outcome & { rate: Rate | null };

export interface RoadDeps {
  /** Throws missing_credentials, invalid_api_key, api_key_expired. */
  authenticate(authorization: string | null, access?: Access): Caller;
  holdKey: HoldKey;
  database: Database;
  log: Log;
  /** Whether the disk has space for what the operation adds. Throws disk_full. */
  requireSpace(operation: Operation): void;
  /** Whether calls that only read are recorded. */
  auditReads: boolean;
  /** Of an address; 0: any number. */
  failedLoginsPerMinute: number;
  /** Of a key. */
  rateLimits: RateLimits;
  requests: RequestCounts;
}

/** How long the records of calls that only read may wait, and how many of them. */
const READINGS_MS = 20;
const MOST_READINGS = 128;

type Credentials = Pick<RoadRequest, "authorization" | "recognise" | "source" | "request_id" | "ip">;

export interface Road {
  /** Walks the road. Never throws. */
  run(bound: Bound, request: RoadRequest): Promise<RoadReply>;
  /** For doors that answer before there is an operation: why they must not, as authenticate throws it or rate_limited. Never throws. */
  identify(request: Credentials): { refusal: unknown; rate: Rate | null };
  /** Who is calling, where what is asked counts for the key's rate elsewhere. Throws as authenticate does. */
  recognise(request: Credentials): Caller;
  /** Settles once what was recorded of bad credentials so far is on disk: before they are answered. Never rejects. */
  failuresWritten(): Promise<unknown>;
  /** Records what was only counted so far. */
  stop(): void;
}

export function makeRoad(deps: RoadDeps): Road {
  const { database, log } = deps;
  const idempotency = makeIdempotency(database);
  const failedLogins = new FailedLogins(database, log);
  const loginLimit = new LoginLimit(deps.failedLoginsPerMinute);
  const rateLimit = new RateLimit(deps.rateLimits);
  const rateRefusals = new RateRefusals(database, log);
  const checks = new Map<Operation, InputCheck>();
  /** Records of calls that only read, until they are written. */
  let readings: AuditEntry[] = [];

  const inputCheckOf = (operation: Operation): InputCheck => {
    let check = checks.get(operation);
    if (!check) {
      check = makeInputCheck(operation);
      checks.set(operation, check);
    }
    return check;
  };

  const identify = (request: Credentials, admit = () => deps.authenticate(request.authorization)): Caller => {
    try {
      return admit();
    } catch (error) {
      if (error instanceof ServiceError && error.code !== "missing_credentials") {
        const { source, request_id, ip } = request;
        failedLogins.note({ source, request_id, ip, error_code: error.code });
        loginLimit.fail(ip);
      }
      throw error;
    }
  };

  /** What needs no key is answered to anyone; a good key shows more. */
  const anyCaller = (request: RoadRequest): Caller | null => {
    try {
      return request.authorization === null ? null : identify(request);
    } catch {
      return null;
    }
  };

  const admitted = ({ admit, operation }: Bound, request: RoadRequest): Caller => {
    const { token, authorization, params, recognise } = request;
    if (recognise) return identify(request, recognise);
    return admit && token !== null && authorization === null
      ? identify(request, () => admit(token, params))
      : identify(request, () => deps.authenticate(authorization, operation.access));
  };

  const callerOf = (bound: Bound, request: RoadRequest): Caller | null => {
    const { access, openToHost } = bound.operation;
    if (access === "open") return anyCaller(request);
    return openToHost && request.authorization === null && request.isFromHost ? null : admitted(bound, request);
  };

  async function run(bound: Bound, request: RoadRequest): Promise<RoadReply> {
    const { operation } = bound;
    const startedAt = performance.now();
    const at = now();
    let tenure: Tenure | null = null;
    const call: OpenCall = {
      request_id: request.request_id,
      source: request.source,
      ip: request.ip,
      get signal() {
        return tenure?.signal ?? request.signal;
      },
      audit: { details: {} },
      caller: null,
    };
    let claimed: IdempotentCall | null = null;
    let recorded = false;
    let reply: Outcome | null = null;
    let rate: Rate | null = null;
    try {
      call.caller = callerOf(bound, request);
      if (call.caller) {
        rate = rateLimit.take(call.caller);
        requireScope(call.caller, operation.access);
      }
      // Who is known in another way than by a key is watched over by the door.
      if (call.caller && !call.caller.kind && !request.recognise) {
        tenure = new Tenure(deps.holdKey, call.caller.key_id, () => request.signal);
      }
      const target = await bound.find(call, request.params);
      const { input, body_sha256 } = await readInput(bound, request, target);
      tenure?.require();
      rateLimit.require(rate);
      // Who reads the records finds what was read before.
      if (operation.access === "audit:read" && readings.length > 0) await writeReadings();
      deps.requireSpace(operation);
      const caller = call.caller;
      if (request.idempotency_key !== null && operation.method === "POST" && caller) {
        const key = idempotentCall(caller, operation, request, request.idempotency_key, body_sha256);
        const claim = await idempotency.begin(key);
        if (claim.reply) {
          call.audit.details = { replayed: true };
          reply = replay(operation.secretOutput ? openSealed(claim.reply, request.authorization) : claim.reply);
        } else {
          claimed = key;
          call.work_ulid = claim.work_ulid;
          call.note = (begun) => idempotency.note(database.queries, key, begun);
          call.noteFirst = (begun) => database.commit(() => call.note?.(begun), false);
          if (claim.begun) call.begun = claim.begun;
          await faultPoint("call.claimed");
        }
      }
      const isKept = isRecorded(operation, caller);
      if (reply === null && (claimed || isKept)) {
        call.record = (outcome, body) => {
          const status = operation.outcomes[outcome] ?? 200;
          const entry = () => auditEntry(operation, call, { kind: "done", status }, at, performance.now() - startedAt);
          if (isKept) appendAudit(database.queries, entry());
          if (claimed) {
            const stored = { status, body, location: locationOf(operation, request, body) };
            const kept = operation.secretOutput ? seal(stored, request.authorization) : stored;
            idempotency.keep(database.queries, claimed, packSmall(kept));
          }
          recorded = true;
        };
      }
      if (reply === null) {
        const working = bound.run(call, input, target, request.transfer);
        const done = tenure ? await tenure.until(working) : await working;
        const status = operation.outcomes[done.outcome] ?? 200;
        reply = { kind: "done", status, done, location: locationOf(operation, request, done.body), replayed: false };
        if (claimed) await faultPoint("call.worked");
      }
    } catch (error) {
      reply = refusal(withHappened(toProblem(error, request.request_id, log), call), error);
    }
    try {
      const kept = recorded && reply.kind === "done";
      if (!kept) await settle(operation, request, call, claimed, reply, at, performance.now() - startedAt);
      call.onSettled?.(true);
    } catch (error) {
      tenure?.end(null);
      call.onSettled?.(false);
      // What cannot be recorded is not acknowledged.
      const unkept = refusal(withHappened(toProblem(error, request.request_id, log), call), error);
      deps.requests.note(request.source, operation.name, unkept.status, performance.now() - startedAt);
      return { ...unkept, rate };
    }
    deps.requests.note(request.source, operation.name, reply.status, performance.now() - startedAt);
    const done = reply.kind === "done" ? reply.done : null;
    const held = tenure ? tenure.end(done) : done;
    return reply.kind === "done" && held ? { ...reply, done: held, rate } : { ...reply, rate };
  }

  async function readInput(bound: Bound, request: RoadRequest, target: unknown) {
    const { operation } = bound;
    const body =
      operation.body === null || operation.body === "bytes"
        ? { fields: {}, sha256: "" }
        : await request.body(operation.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES);
    const { input, bad: misshapen } = inputCheckOf(operation).check(request.params, request.query(), body.fields);
    const broken = bound.rules(input, target, misshapen);
    const bad = [...misshapen.filter(({ field }) => !broken.some((rule) => rule.field === field)), ...broken];
    if (bad.length > 0) throw brokenRules(bad);
    return { input, body_sha256: body.sha256 };
  }

  const isRecorded = (operation: Operation, caller: Caller | null): boolean =>
    operation.audit !== null && caller !== null && (operation.method !== "GET" || deps.auditReads);

  /** Keeps the record, and the answer where it may be asked for again, in one commit. */
  async function settle(
    operation: Operation,
    request: RoadRequest,
    call: OpenCall,
    claimed: IdempotentCall | null,
    reply: Outcome,
    at: string,
    durationMs: number,
  ): Promise<void> {
    const reads = operation.method === "GET" && outcomeOf(reply) !== "denied";
    const records = isRecorded(operation, call.caller);
    if (reply.kind === "problem" && reply.problem.code === "rate_limited" && call.caller) {
      const { caller, source, request_id, ip } = call;
      rateRefusals.note({ caller, source, request_id, ip });
      return;
    }
    if (!records && !claimed) return;
    if (reads && !call.along) return recordRead(auditEntry(operation, call, reply, at, durationMs));
    const kept = claimed ? await keptReply(operation, request.authorization, reply) : null;
    const written = database.commit((queries) => {
      if (records) appendAudit(queries, auditEntry(operation, call, reply, at, durationMs));
      call.along?.();
      if (!claimed) return;
      if (kept) idempotency.keep(queries, claimed, kept);
      else idempotency.release(queries, claimed);
    }, operation.method === "DELETE");
    // A reader need not wait for the record of its reading.
    if (reads) written.catch((error: unknown) => log.error("audit not written", { error: String(error) }));
    else await written;
  }

  /** A reader need not wait for the record of its reading; such records are written some together. */
  function recordRead(entry: AuditEntry): void {
    readings.push(entry);
    if (readings.length === MOST_READINGS) void writeReadings();
    if (readings.length > 1) return;
    const together = readings;
    const written = database.commitWithin(READINGS_MS, (queries) => {
      if (readings === together) readings = [];
      appendAudits(queries, together);
    });
    written.catch((error: unknown) => log.error("audit not written", { error: String(error) }));
  }

  /** They come before what is committed next. */
  const writeReadings = () => database.commit(() => {}, false).catch(() => {});

  /** Null for what may be tried again. */
  async function keptReply(
    { secretOutput }: Operation,
    authorization: string | null,
    reply: Outcome,
  ): Promise<PackedReply | null> {
    if (reply.kind === "done") {
      const stored = storedReply(reply);
      return await idempotency.pack(secretOutput ? seal(stored, authorization) : stored);
    }
    if (reply.status >= 500) return null;
    return await idempotency.pack({ status: reply.status, body: reply.problem, location: null });
  }

  return {
    run,
    identify: (request) => {
      let rate: Rate | null = null;
      try {
        const caller = identify(request, request.recognise);
        rate = rateLimit.take(caller);
        if (rate?.isWithin === false) rateRefusals.note({ ...request, caller });
        rateLimit.require(rate);
        return { refusal: null, rate };
      } catch (refusal) {
        return { refusal, rate };
      }
    },
    recognise: (request) => identify(request, request.recognise),
    failuresWritten: () => failedLogins.written,
    stop: () => {
      failedLogins.settle();
      rateRefusals.settle();
    },
  };
}

function idempotentCall(
  caller: Caller,
  operation: Operation,
  request: RoadRequest,
  key: string,
  bodySha256: string,
): IdempotentCall {
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new ServiceError("validation_failed", {
      detail: "Idempotency-Key must be 1 to 255 visible ASCII characters.",
      errors: [{ field: "Idempotency-Key", code: "pattern", message: "1 to 255 visible ASCII characters." }],
    });
  }
  return {
    key_id: caller.key_id,
    method: operation.method,
    path: request.path,
    idempotency_key: key,
    // The query is part of what is asked.
    body_sha256: `${bodySha256} ${JSON.stringify(request.query())}`,
  };
}

function refusal(problem: Problem, error: unknown): Outcome {
  const retry_after_seconds = retryAfterOf(error, problem);
  return { kind: "problem", status: problem.status, problem, retry_after_seconds, replayed: false };
}

/** On a full disk a caller must know whether what it asked for was done all the same. */
function withHappened(problem: Problem, { happened }: OpenCall): Problem {
  return problem.status === 507 && happened ? { ...problem, details: { ...problem.details, ...happened } } : problem;
}

function storedReply(reply: Extract<Outcome, { kind: "done" }>): StoredReply {
  return { status: reply.status, body: reply.done.body, location: reply.location };
}

function replay(stored: StoredReply): Outcome {
  if (stored.status >= 400) {
    return {
      kind: "problem",
      status: stored.status,
      problem: stored.body as Problem,
      retry_after_seconds: null,
      replayed: true,
    };
  }
  return {
    kind: "done",
    status: stored.status,
    done: { outcome: "replayed", body: stored.body },
    location: stored.location,
    replayed: true,
  };
}

/** Fills `{name}` in the operation's location from the answer and the path. */
function locationOf(operation: Operation, request: RoadRequest, body: unknown): string | null {
  if (!operation.location) return null;
  const fields = { ...request.params, ...(body as Record<string, unknown> | undefined) };
  return operation.location.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(fields[name])));
}

const outcomeOf = ({ kind, status }: Pick<Outcome, "kind" | "status">): AuditEntry["outcome"] =>
  kind === "done" ? "success" : status === 401 || status === 403 ? "denied" : "error";

function auditEntry(
  operation: Operation,
  call: OpenCall,
  reply: { kind: "done"; status: number } | Extract<Outcome, { kind: "problem" }>,
  at: string,
  durationMs: number,
): AuditEntry {
  const { caller } = call;
  if (!caller || operation.audit === null) throw new Error(`${operation.name} leaves no record`);
  const code = reply.kind === "problem" ? reply.problem.code : undefined;
  return {
    event: operation.audit,
    outcome: outcomeOf(reply),
    at,
    // The operator is of none.
    org_id: caller.org_id || null,
    actor: { type: caller.kind ?? "key", id: caller.key_id, name: caller.name },
    source: call.source,
    request_id: call.request_id,
    ip: call.ip,
    status: reply.status,
    error_code: code,
    duration_ms: Math.round(durationMs * 100) / 100,
    ...call.audit,
  };
}
