/** Context of a request in the pipeline: the transport's input, the state in between, the transport's output. */
import type { Source } from "../../../shared/api/audit.ts";
import type { Operation } from "../../../shared/api/contract.ts";
import type { Problem } from "../../../shared/api/errors.ts";
import type { TraceContext } from "../../../shared/traceparent.ts";
import type { Host } from "../../cluster/directory.ts";
import type { AuditFacts } from "../../core/call/audit-facts.ts";
import type { CallEffects, StartedWork } from "../../core/call/call-effects.ts";
import type { Caller, Done, EventsReply, OpenCall, Transfer } from "../../core/call/operation.ts";
import { CallTrace, NO_TRACES, type SpanBegin, type Traces } from "../../core/call/traces.ts";
import { fineWallMs, monotonicMs, now } from "../../core/clock.ts";
import type { CallLifetime } from "./call-lifetime.ts";
import type { Claimed, Phase } from "./phase.ts";
import type { Rate } from "./rate-limit.ts";

/** A request as a transport passes it on. */
export interface PipelineRequest {
  source: Source;
  request_id: string;
  ip: string | null;
  /** The client's connection; absent or null: forwarded by another host, or without a connection of its own. */
  readonly connection?: string | null;
  /** Whether it comes from the host itself, without an intermediary; absent: it does not. */
  readonly isFromHost?: boolean;
  /** Another host has forwarded it: this host has its target, or no host has. */
  readonly hop?: 1 | undefined;
  /** The Authorization header, or null. */
  authorization: string | null;
  /** A token issued by the domain module, for operations that accept it instead of a key. */
  token: string | null;
  /** The caller, if the transport authenticates by other means than the header. Throws as authenticate does. */
  readonly recognise?: (() => Caller) | undefined;
  /** Rate of the call, if the transport has counted it already. */
  readonly rate?: Rate | null | undefined;
  /** The path as requested: part of the idempotency scope. */
  path: string;
  params: Record<string, string>;
  /** Reads the query. Throws invalid_query. */
  query(): Record<string, string>;
  /**
   * Reads the body's fields; rejects with the reason of `over` when that aborts. Throws body_too_large, unsupported_media_type,
   * invalid_json, invalid_body.
   */
  body(maxBytes: number, over?: AbortSignal): Promise<{ fields: Record<string, unknown>; sha256: string }>;
  idempotency_key: string | null;
  /** The trace that it continues; null if it names none. */
  trace: TraceContext | null;
  transfer: Transfer;
  signal: AbortSignal;
  /**
   * Forwards the request unchanged to another host; absent if the transport cannot, or if a host forwarded it. Rejects with
   * host_unreachable.
   */
  readonly forward?: ((host: Host) => Promise<Outcome>) | undefined;
  /**
   * Requests another host's part of this read, with this query, as one response or as lines; absent as `forward` is. Rejects with
   * host_unreachable.
   */
  readonly ask?:
    | ((host: Host, query: Record<string, string>, until: AbortSignal, as?: "lines") => Promise<RemoteResponse>)
    | undefined;
}

/** Another host's response. */
interface RemoteResponse {
  status: number;
  body: unknown;
  /** Of lines. */
  events?: EventsReply;
}

/** Storage of a verb's results: within its transaction, except for `noteFirst`. */
export interface Keeper {
  /** Throws if it must not be stored, as proof_required. */
  requireKept(context: RequestContext): void;
  /** Runs the step when the change is real, not in a dry run. */
  locally(step: () => void): void;
  note(claim: Claimed, started: StartedWork): void;
  noteFirst(claim: Claimed, started: StartedWork): Promise<void>;
  /** Stores its record, or several, and its response if it has a claim. `undo` gets the reversal of the phase change. */
  keep(context: RequestContext, outcome: string, body: object, each?: readonly AuditFacts[]): void;
  undo(step: () => void): void;
}

/** A request from its arrival until it is settled; its verb uses it as CallEffects. */
export class RequestContext implements CallEffects {
  readonly operation: Operation;
  readonly request: PipelineRequest;
  readonly call: OpenCall;
  /** When it began. */
  readonly at = now();
  readonly startedAt = monotonicMs();
  /** The key's remaining rate; null without a key, and without a limit. */
  rate: Rate | null = null;
  phase: Phase = ARRIVED;
  ulid: string | undefined = undefined;
  begun: StartedWork | undefined = undefined;
  effect: CallEffects["effect"] = null;
  /** Lifetime of a call with a key or session; null until the caller is known, and for calls without either. */
  lifetime: CallLifetime | null = null;
  /** Aborts when the rest of a body that the verb reads is no longer awaited; null: it is awaited while the client sends. */
  bodyOver: AbortSignal | null = null;
  /** Releases the places of a batch; null if it has none. */
  #leaveBatch: (() => void) | null = null;
  readonly #keeper: Keeper;
  #along: (() => void) | null = null;
  #hears: ((recorded: boolean) => void) | null = null;
  /** Its record is written: further writes along with it come too late. */
  #isWritten = false;
  #isTooLate = false;

  constructor(operation: Operation, request: PipelineRequest, keeper: Keeper, traces: Traces) {
    this.operation = operation;
    this.request = request;
    this.#keeper = keeper;
    const trace = new CallTrace(traces, request.trace, beginOf(traces, operation, request));
    this.call = new RoadCall(request, this, trace);
  }

  /** Aborts when the client disconnects, the key becomes invalid, or the body is no longer awaited. */
  get signal(): AbortSignal {
    const left = this.lifetime?.signal ?? this.request.signal;
    return this.bodyOver ? AbortSignal.any([left, this.bodyOver]) : left;
  }

  /** The claim of its Idempotency-Key, until its response is settled. */
  get claim(): Claimed | null {
    return "claim" in this.phase ? this.phase.claim : null;
  }

  get hasAlong(): boolean {
    return this.#along !== null;
  }

  /** The verb starts. */
  work(claim: Claimed | null): void {
    this.phase = claim === null ? UNCLAIMED : { is: "working", claim };
    if (this.operation.method !== "GET") this.call.trace.starts();
  }

  /** Settles like the work, or throws invalid_api_key as soon as the key is lost. */
  until(work: Promise<Done<Operation>>): Promise<Done<Operation>> {
    return this.lifetime ? this.lifetime.until(work) : work;
  }

  note(started: StartedWork): void {
    if (this.claim) this.#keeper.note(this.claim, started);
  }

  async noteFirst(started: StartedWork): Promise<void> {
    if (this.claim) await this.#keeper.noteFirst(this.claim, started);
  }

  /** If the verb outlasts the call, for example because its key has expired, its result is recorded anyway. */
  keep(outcome: string, body: object, each?: readonly AuditFacts[]): void {
    this.#keeper.requireKept(this);
    this.#keeper.locally(() => {
      const { phase } = this;
      this.#keeper.keep(this, outcome, body, each);
      if (phase.is !== "working") return;
      this.phase = { is: "kept", claim: phase.claim };
      this.#keeper.undo(() => {
        this.phase = phase;
      });
    });
  }

  along(write: () => void): void {
    if (this.#isWritten) this.#isTooLate = true;
    else this.#along = write;
  }

  /** A verb that outlasts its call is notified immediately that no record contains its later effects. */
  whenSettled(hear: (recorded: boolean) => void): void {
    if (this.phase.is === "settled") hear(false);
    else this.#hears = hear;
  }

  /** Called within the transaction that stores the call's record. */
  writeAlong(): void {
    this.#isWritten = true;
    this.#along?.();
  }

  /** Notes the function that releases the call's places among batches. */
  enterBatch(leave: () => void): void {
    this.#leaveBatch = leave;
  }

  leaveBatch(): void {
    this.#leaveBatch?.();
    this.#leaveBatch = null;
  }

  /** Releases everything that the call holds: another host carries it out. */
  release(): void {
    this.lifetime?.end(null);
    this.claim?.letGo();
    this.leaveBatch();
  }

  /** Ends the call, and releases its Idempotency-Key for the same call. */
  settle(recorded: boolean): void {
    this.claim?.letGo();
    this.phase = SETTLED;
    this.#hears?.(recorded && !this.#isTooLate);
  }
}

/** For MCP, the tool call is the server span; its operations are internal spans. */
function beginOf(traces: Traces, { name }: Operation, { source }: PipelineRequest): SpanBegin {
  if (traces === NO_TRACES) return { name };
  return { name, kind: source === "mcp" ? "internal" : "server", at: fineWallMs() };
}

const ARRIVED: Phase = { is: "arrived" };
const UNCLAIMED: Phase = { is: "working", claim: null };
const SETTLED: Phase = { is: "settled" };

class RoadCall implements OpenCall {
  readonly request_id: string;
  readonly source: Source;
  readonly ip: string | null;
  readonly audit: AuditFacts = { details: {} };
  readonly work: RequestContext;
  readonly trace: CallTrace;
  caller: Caller | null = null;

  constructor({ request_id, source, ip }: PipelineRequest, work: RequestContext, trace: CallTrace) {
    this.request_id = request_id;
    this.source = source;
    this.ip = ip;
    this.work = work;
    this.trace = trace;
  }

  get signal(): AbortSignal {
    return this.work.signal;
  }
}

export const durationOf = ({ startedAt }: RequestContext): number => monotonicMs() - startedAt;

export type Outcome =
  | { kind: "done"; status: number; done: Done<Operation>; location: string | null; replayed: boolean }
  | { kind: "problem"; status: number; problem: Problem; retry_after_seconds: number | null; replayed: boolean };

export type PipelineReply = Outcome & { rate: Rate | null };

/** The verb's work is done. */
export function doneAs(context: RequestContext, done: Done<Operation>): Outcome {
  const { outcome, body } = done;
  return {
    kind: "done",
    status: statusOf(context, outcome),
    done,
    location: locationOf(context, body),
    replayed: false,
  };
}

export const statusOf = ({ operation }: Pick<RequestContext, "operation">, outcome: string): number =>
  operation.outcomes[outcome] ?? 200;

/** Fills `{name}` in the operation's location from the answer and the path. */
export function locationOf(
  { operation, request }: Pick<RequestContext, "operation" | "request">,
  body: unknown,
): string | null {
  if (!operation.location) return null;
  const fields = { ...request.params, ...(body as Record<string, unknown> | undefined) };
  return operation.location.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(fields[name])));
}
