/**
 * Idempotency in the pipeline: a call is claimed before its work, the resources that the work creates are noted, and its response is
 * stored, sealed if it contains a secret. Its answer to a repeated call is decided in idempotency-answers.ts.
 */
import { hash } from "node:crypto";
import type { Problem } from "../../../shared/api/errors.ts";
import {
  IDEMPOTENCY_KEY_PATTERN,
  MAX_IDEMPOTENCY_KEY,
  REQUEST_HEADERS,
  takesIdempotencyKey,
} from "../../../shared/api/headers.ts";
import type { StartedWork } from "../../core/call/call-effects.ts";
import type { Caller } from "../../core/call/operation.ts";
import type { MaybePromise } from "../../core/concurrency/maybe-promise.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import {
  type IdempotentCall,
  makeIdempotency,
  type PackedReply,
  packSmall,
  type StoredReply,
} from "./idempotency-answers.ts";
import type { CallsBranch } from "./idempotency-branch.ts";
import type { Claimed } from "./phase.ts";
import { locationOf, type Outcome, type RequestContext, statusOf } from "./request-context.ts";
import { openSealed, seal } from "./seal.ts";

/** Longest query that is stored as text; longer ones are hashed. */
const SHORT_QUERY = 256;

type ClaimResult = { before: Outcome; claim: null } | { before: null; claim: Claimed | null };

export interface IdempotencyStore {
  /**
   * The stored answer of the same call; else the call's claim, null without an Idempotency-Key, and the work is to be done.
   * Throws validation_failed, idempotency_key_reused, idempotency_in_progress, history_gone.
   */
  claim(context: RequestContext, bodySha256: string): MaybePromise<ClaimResult>;
  /** Within a transaction of the verb: records the work that it has started. */
  note(claim: Claimed, started: StartedWork): void;
  /** Within a transaction of the verb: stores its answer, which is small. */
  keepNow(context: RequestContext, claim: Claimed, outcome: string, body: object): void;
  /** Prepares a response for storage; null if the call may be retried. */
  pack(context: RequestContext, reply: Outcome): Promise<PackedReply | null>;
  /** Within a transaction. */
  keep(queries: Queries, claim: Claimed, packed: PackedReply): void;
  /** Branches the calls of guests with their room. */
  branch: CallsBranch;
}

const NOTHING: ClaimResult = { before: null, claim: null };

export function makeIdempotencyStore(database: Database): IdempotencyStore {
  const idempotency = makeIdempotency(database);
  const claimed = async (context: RequestContext, idempotentCall: IdempotentCall): Promise<ClaimResult> => {
    const claim = await idempotency.begin(idempotentCall);
    if (claim.reply) {
      context.call.audit.details = { replayed: true };
      const reply = context.operation.secretOutput
        ? openSealed(claim.reply, context.request.authorization)
        : claim.reply;
      return { before: replayOf(reply), claim: null };
    }
    context.ulid = claim.work_ulid;
    context.begun = claim.begun ?? undefined;
    return { before: null, claim };
  };
  return {
    claim: (context, bodySha256) => {
      const { operation, request, call } = context;
      if (request.idempotency_key === null || !takesIdempotencyKey(operation) || call.caller === null) return NOTHING;
      return claimed(context, callOf(call.caller, context, request.idempotency_key, bodySha256));
    },

    note: ({ call }, started) => idempotency.note(database.queries, call, started),

    keepNow: (context, { call }, outcome, body) => {
      const reply = { status: statusOf(context, outcome), body, location: locationOf(context, body) };
      idempotency.keep(database.queries, call, packSmall(sealedFor(context, reply)));
    },

    pack: async (context, reply) => {
      if (reply.kind === "done") {
        const { status, done, location } = reply;
        return await idempotency.pack(sealedFor(context, { status, body: done.body, location }));
      }
      // The client disconnected, so it did not receive the response: a retry resumes the work.
      if (reply.status >= 500 || context.request.signal.aborted) return null;
      return await idempotency.pack({ status: reply.status, body: reply.problem, location: null });
    },

    keep: (queries, { call }, packed) => idempotency.keep(queries, call, packed),

    branch: idempotency.branch,
  };
}

function sealedFor({ operation, request }: RequestContext, reply: StoredReply): StoredReply {
  return operation.secretOutput ? seal(reply, request.authorization) : reply;
}

const IDEMPOTENCY_KEY = new RegExp(IDEMPOTENCY_KEY_PATTERN);

/** The query is part of the request; even an unused one may be as long as a URL. */
function queryOf(query: Record<string, string>): string {
  const text = JSON.stringify(query);
  return text.length <= SHORT_QUERY ? text : hash("sha256", text);
}

function callOf(
  caller: Caller,
  { operation, request }: RequestContext,
  key: string,
  bodySha256: string,
): IdempotentCall {
  if (!IDEMPOTENCY_KEY.test(key)) {
    const message = `1 to ${MAX_IDEMPOTENCY_KEY} visible ASCII characters.`;
    throw new ServiceError("validation_failed", {
      detail: `Idempotency-Key must be ${message}`,
      errors: [{ field: REQUEST_HEADERS.idempotency_key.name, code: "pattern", message }],
    });
  }
  return {
    org_id: caller.org_id,
    key_id: caller.key_id,
    method: operation.method,
    // A user may use `self` in paths of several organizations.
    path: caller.session ? `${caller.org_id} ${request.path}` : request.path,
    idempotency_key: key,
    body_sha256: `${bodySha256} ${queryOf(request.query())}`,
  };
}

function replayOf({ status, body, location }: StoredReply): Outcome {
  if (status >= 400) {
    return { kind: "problem", status, problem: body as Problem, retry_after_seconds: null, replayed: true };
  }
  return { kind: "done", status, done: { outcome: "replayed", body }, location, replayed: true };
}
