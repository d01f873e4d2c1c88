/**
 * Binding of a verb to its operation: its input and its possible answers.
 *
 * A verb is up to three functions, called in this order by the pipeline (edge/pipeline/pipeline.ts):
 *   find   throws 404 before the body is read
 *   rules  returns the fields that break a rule beyond their shape
 *   run    does the work
 */
import type { Source } from "../../../shared/api/audit.ts";
import type { InputOf, Operation, OutputOf, Scope } from "../../../shared/api/contract.ts";
import type { ErrorCode, FieldError } from "../../../shared/api/errors.ts";
import type { OwnHeader } from "../../../shared/api/headers.ts";
import type { Role } from "../../../shared/api/people/members.ts";
import type { KeyId, OrgId, RequestId, SessionId } from "../../../shared/ids.ts";
import type { DuplexSession } from "../concurrency/duplex-session.ts";
import type { MaybePromise } from "../concurrency/maybe-promise.ts";
import type { AuditFacts } from "./audit-facts.ts";
import { type CallEffects, UnkeptEffects } from "./call-effects.ts";
import { type CallTrace, untraced } from "./traces.ts";

/** The identity that a key represents. */
export interface Caller {
  /** Kind of the actor; a key if absent. */
  kind?: "sandbox" | "operator" | "user";
  /** Of a signed-in person. */
  session?: SessionFacts;
  /** For a sandbox's own key: the key that created the sandbox. */
  made_by?: string;
  org_id: OrgId;
  key_id: KeyId;
  name: string;
  plan: string;
  scopes: readonly Scope[];
  room_ids: readonly string[] | null;
  agent_id: string | null;
  expires_at: string | null;
  /** An application that a person has signed in: it can request missing scopes from the person. */
  granted?: true;
  /** The original of a rotated key: all keys of a rotation share one rate. */
  first_key_id?: KeyId | null;
}

/**
 * Condition of a stream or connection opened by a session: it ends when the session views another organization, or its person has another
 * role there.
 */
export interface HeldSession {
  session_id: SessionId;
  looks_at: OrgId;
  role: Role;
}

/** A session's additions to the caller; `key_id` is then the user_id. */
export interface SessionFacts extends HeldSession {
  /** Scopes that keys made by them may have: more than the session itself has. */
  gives: readonly Scope[];
  /** Time until which the user need not authenticate again. */
  proved_until: string;
}

/** One request on its way. */
export interface Call {
  request_id: RequestId | string;
  source: Source;
  ip: string | null;
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignal;
  /** Facts that the verb adds to the audit record of this call. */
  audit: AuditFacts;
  /** Effects of the call, reported by the verb. */
  work: CallEffects;
  /** Its place in a trace. */
  readonly trace: CallTrace;
}

/** An authenticated call. */
export interface KeyCall extends Call {
  caller: Caller;
}

/** The restriction that bars a caller from the organization as a whole; null if absent. */
export function boundTo({ room_ids, agent_id }: Pick<Caller, "room_ids" | "agent_id">): "rooms" | "an agent" | null {
  return room_ids !== null ? "rooms" : agent_id !== null ? "an agent" : null;
}

/** Identity of a key across rotations. */
export function firstKeyOf({ first_key_id, key_id }: Pick<Caller, "first_key_id" | "key_id">): KeyId {
  return first_key_id ?? key_id;
}

/** Caller in the format of audit records; a person's name is never recorded. */
export function actorOf({ kind, key_id, name }: Caller): { type: string; id: string; name: string } {
  return { type: kind ?? "key", id: key_id, name: kind === "user" ? "" : name };
}

/** The key that the call's usage is charged to. */
export function keyBehind({ made_by, key_id }: Caller): string {
  return made_by ?? key_id;
}

/** A call for checking a caller's access only. Nothing of it is recorded. */
export function trialCall(caller: Caller): KeyCall {
  const { signal } = new AbortController();
  const trace = untraced();
  return {
    request_id: "",
    source: "rest",
    ip: null,
    signal,
    audit: { details: {} },
    work: new UnkeptEffects(),
    trace,
    caller,
  };
}

/** A call that needs no authentication. */
export interface OpenCall extends Call {
  caller: Caller | null;
}

type CallOf<Op extends Operation> = Op["access"] extends "open" ? OpenCall : KeyCall;

/** A response with a file, or a range of one. */
export interface BytesReply {
  stream: ReadableStream<Uint8Array>;
  offset: number;
  length: number;
  size_bytes: number;
  etag: string;
  modified_at: string;
  /** Whether the caller requested a part. */
  partial: boolean;
}

/** A streaming answer: values as they arrive, each a line of JSON or a server-sent event. */
export interface EventsReply {
  /** Never throws; waits for a slow reader. */
  events: AsyncGenerator<readonly StreamEvent[]>;
  /** The same events as lines of JSON in UTF-8, for responses in that form; only one of the two is read. */
  lines?: AsyncGenerator<Uint8Array>;
  /** The client has stopped reading. */
  cancel(): void;
  /** A client that leaves sent data unread for `ms` is disconnected, and `cut` is called; absent: waits for slow readers. */
  slow?: { ms: number; cut(): void };
}

export interface StreamEvent {
  /** The event's Last-Event-ID; null if it is no position in the stream. */
  id: number | string | null;
  data: object;
  /** The data as JSON, if they are sent to many clients. */
  json?: string;
  /** One more field of `data`, which is sent in base64. */
  data_b64?: Uint8Array;
}

/** A body as JSON text in UTF-8. */
export interface JsonBody<Body> {
  bytes: Uint8Array;
  /** Its type; never set. */
  readonly of?: Body;
}

const UTF8 = new TextDecoder();

export const parsed = <Body>({ bytes }: JsonBody<Body>): Body => JSON.parse(UTF8.decode(bytes)) as Body;

export interface Done<Op extends Operation> {
  outcome: keyof Op["outcomes"] & string;
  body?: OutputOf<Op>;
  /** The body as JSON text, instead of `body`. */
  json?: JsonBody<OutputOf<Op>>;
  bytes?: BytesReply;
  /** Response text with its media type. */
  text?: { type: string; text: string };
  /** Response picture (PNG). */
  picture?: Uint8Array;
  /** Response stream with its media type, forwarded as it arrives. */
  stream?: { type: string; bytes: ReadableStream<Uint8Array> };
  /** Response is a WebSocket session. */
  conversation?: DuplexSession;
  events?: EventsReply;
  /** Not modified: the client's cached copy is current (If-None-Match). */
  unchanged?: { etag: string };
  /** Another host's response, forwarded unchanged. */
  answer?: Response;
}

/** The response body as a value, whether it was created as a value or as JSON. */
export function bodyOf<Op extends Operation>({ body, json }: Done<Op>): OutputOf<Op> | undefined {
  return json ? parsed(json) : body;
}

/** The same as JSON text. */
export function jsonOf<Op extends Operation>({ body, json }: Done<Op>): string {
  return json ? UTF8.decode(json.bytes) : JSON.stringify(body);
}

/** Parts of a request other than fields: the raw body, and headers about bytes and streams. */
export interface Transfer extends Record<VerbHeader, string | null> {
  body: ReadableStream<Uint8Array> | null;
  /** Whether the client requests a WebSocket. */
  websocket: boolean;
  /** Whether the caller accepts lines of JSON, if there is a choice. */
  ndjson: boolean;
}
/** Excludes the header with a terminal's token, which only the transport reads. */
type VerbHeader = Exclude<OwnHeader, "websocket_protocol">;

/** Transfer of a request that has only fields. */
export const NO_TRANSFER: Transfer = {
  body: null,
  range: null,
  if_match: null,
  if_none_match: null,
  last_event_id: null,
  websocket: false,
  ndjson: false,
};

/** Headers that a verb may read: only those that its operation declares. */
export type TransferOf<Op extends Operation> = Omit<Transfer, VerbHeader> & Pick<Transfer, HeadersOf<Op>>;
type HeadersOf<Op extends Operation> = Op extends { headers: readonly (infer Name)[] } ? Name & VerbHeader : never;

/** A field that is well-formed but violates another rule. */
export interface RuleBreak extends FieldError {
  /** Code of the response if no other rule is violated; absent: `code`, if that is a code of the error table. */
  problem?: ErrorCode | undefined;
  /** `details` of the response if no other rule is violated. */
  details?: Record<string, unknown>;
}

export interface Verb<Op extends Operation, Target> {
  /** Authenticates a caller with a token of the noun instead of a key. Throws invalid_api_key. */
  admit?(token: string, params: Record<string, string>): Caller;
  find?(call: CallOf<Op>, params: Record<string, string>): MaybePromise<Target>;
  /** `bad` is the result of the check of shapes; a rule that names one of these fields again replaces its entry. */
  rules?(input: Partial<InputOf<Op>>, target: Target, bad: readonly RuleBreak[]): MaybePromise<RuleBreak[]>;
  /** Number of additional calls that this call counts as in the caller's rate limit; 0 if absent. The input is validated. */
  moreCalls?(input: InputOf<Op>, target: Target): number;
  run(call: CallOf<Op>, input: InputOf<Op>, target: Target, transfer: TransferOf<Op>): MaybePromise<Done<Op>>;
}

/** An operation with its verb, with types erased, as the pipeline uses it. */
export interface Bound {
  operation: Operation;
  admit: ((token: string, params: Record<string, string>) => Caller) | null;
  find(call: OpenCall, params: Record<string, string>): unknown;
  rules(input: unknown, target: unknown, bad: readonly RuleBreak[]): MaybePromise<RuleBreak[]>;
  moreCalls(input: unknown, target: unknown): number;
  run(call: OpenCall, input: unknown, target: unknown, transfer: Transfer): MaybePromise<Done<Operation>>;
}

/** Binds a verb to its operation. The pipeline checks access and input first, which makes the casts here valid. */
export function bind<Op extends Operation, Target = undefined>(operation: Op, verb: Verb<NoInfer<Op>, Target>): Bound {
  return {
    operation,
    admit: verb.admit ?? null,
    find: (call, params) => verb.find?.(call as CallOf<Op>, params),
    rules: (input, target, bad) => verb.rules?.(input as Partial<InputOf<Op>>, target as Target, bad) ?? [],
    moreCalls: (input, target) => verb.moreCalls?.(input as InputOf<Op>, target as Target) ?? 0,
    run: (call, input, target, transfer) =>
      verb.run(call as CallOf<Op>, input as InputOf<Op>, target as Target, transfer) as unknown as MaybePromise<
        Done<Operation>
      >,
  };
}
