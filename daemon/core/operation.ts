/**
 * Owns how a verb is bound to its operation: what it is given and what it may answer.
 *
 * A verb is up to three functions, called in this order by the road (edge/run.ts):
 *   find   throws 404 before the body is looked at
 *   rules  names the fields that break a rule beyond their shape
 *   run    does the work
 */
import type { Source } from "../../shared/api/audit.ts";
import type { InputOf, Operation, OutputOf, Scope } from "../../shared/api/contract.ts";
import type { ErrorCode, FieldError } from "../../shared/api/errors.ts";
import type { OwnHeader } from "../../shared/api/headers.ts";
import type { Role } from "../../shared/api/members.ts";
import type { KeyId, OrgId, RequestId, SessionId } from "../../shared/ids.ts";
import type { AuditFacts } from "./audit-facts.ts";
import type { Conversation } from "./conversation.ts";
import type { Soon } from "./soon.ts";
import { type CallTrace, untraced } from "./traces.ts";
import { UnkeptWork, type Work } from "./work.ts";

/** Whom a key stands for. */
export interface Caller {
  /** What stands behind it; a key if absent. */
  kind?: "sandbox" | "operator" | "user";
  /** Of a person who is signed in. */
  session?: SessionFacts;
  /** The key that made the sandbox that it is. */
  made_by?: string;
  org_id: OrgId;
  key_id: KeyId;
  name: string;
  plan: string;
  scopes: readonly Scope[];
  room_ids: readonly string[] | null;
  agent_id: string | null;
  expires_at: string | null;
  /** An application that a person has signed in: what it lacks it can ask the person for. */
  granted?: true;
  /** The first of the keys that it was rotated from, where it was: all share one rate. */
  first_key_id?: KeyId | null;
}

/** What goes on by a session goes on as long as that looks at this organization, and its person has this role there. */
export interface HeldSession {
  session_id: SessionId;
  looks_at: OrgId;
  role: Role;
}

/** What a person's session adds to who they are; `key_id` is then the user_id. */
export interface SessionFacts extends HeldSession {
  /** What keys that they make may be given: more than the session has itself. */
  gives: readonly Scope[];
  /** Until when they need not prove again to be the person. */
  proved_until: string;
}

/** One request on its way. */
export interface Call {
  request_id: RequestId | string;
  source: Source;
  ip: string | null;
  /** Ends when the client is gone. */
  readonly signal: AbortSignal;
  /** Facts that the verb adds to the audit record of this call. */
  audit: AuditFacts;
  /** What comes of it, as the verb says it. */
  work: Work;
  /** Where it is in a trace. */
  readonly trace: CallTrace;
}

/** A call by a known key. */
export interface KeyCall extends Call {
  caller: Caller;
}

/** What keeps a caller from the organization as a whole; null when nothing does. */
export function boundTo({ room_ids, agent_id }: Pick<Caller, "room_ids" | "agent_id">): "rooms" | "an agent" | null {
  return room_ids !== null ? "rooms" : agent_id !== null ? "an agent" : null;
}

/** Who a key is, also after it was rotated. */
export function firstKeyOf({ first_key_id, key_id }: Pick<Caller, "first_key_id" | "key_id">): KeyId {
  return first_key_id ?? key_id;
}

/** As records name a caller; what a person is called is no record's. */
export function actorOf({ kind, key_id, name }: Caller): { type: string; id: string; name: string } {
  return { type: kind ?? "key", id: key_id, name: kind === "user" ? "" : name };
}

/** The key whose use of the service a call is. */
export function keyBehind({ made_by, key_id }: Caller): string {
  return made_by ?? key_id;
}

/** A call that is not made: what a caller would find. Nothing of it is recorded. */
export function trialCall(caller: Caller): KeyCall {
  const { signal } = new AbortController();
  const trace = untraced();
  return {
    request_id: "",
    source: "rest",
    ip: null,
    signal,
    audit: { details: {} },
    work: new UnkeptWork(),
    trace,
    caller,
  };
}

/** A call that may come without a key. */
export interface OpenCall extends Call {
  caller: Caller | null;
}

type CallOf<Op extends Operation> = Op["access"] extends "open" ? OpenCall : KeyCall;

/** A file, or a part of one, as an answer. */
export interface BytesReply {
  stream: ReadableStream<Uint8Array>;
  offset: number;
  length: number;
  size_bytes: number;
  etag: string;
  modified_at: string;
  /** Whether the caller asked for a part. */
  partial: boolean;
}

/** An answer that goes on: values as they come, each a line of JSON or a server-sent event. */
export interface EventsReply {
  /** Never throws; a slow reader makes it wait. */
  events: AsyncGenerator<readonly StreamEvent[]>;
  /** The same as lines of JSON in UTF-8, for answers in that form: of the two one is read. */
  lines?: AsyncGenerator<Uint8Array>;
  /** Nobody reads it any more. */
  cancel(): void;
  /** Who leaves what was sent untaken for so long is cut off, and `cut` is called; absent: a slow reader is waited for. */
  slow?: { ms: number; cut(): void };
}

export interface StreamEvent {
  /** What Last-Event-ID names it by; null for what is not a place in the stream. */
  id: number | string | null;
  data: object;
  /** The data as JSON, where it is told to many. */
  json?: string;
  /** One more field of `data`, which is told in base64. */
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
  /** The body, in place of `body`. */
  json?: JsonBody<OutputOf<Op>>;
  bytes?: BytesReply;
  /** The answer is this text, of this media type. */
  text?: { type: string; text: string };
  /** The answer is this picture, a PNG. */
  picture?: Uint8Array;
  /** The answer is these bytes of this media type, as they come. */
  stream?: { type: string; bytes: ReadableStream<Uint8Array> };
  /** The answer is a conversation, by WebSocket. */
  conversation?: Conversation;
  events?: EventsReply;
  /** The caller's copy is still current (If-None-Match). */
  unchanged?: { etag: string };
  /** It is what another host has answered, as it is. */
  answer?: Response;
}

/** The body of an answer as a value, in whichever form it was made. */
export function bodyOf<Op extends Operation>({ body, json }: Done<Op>): OutputOf<Op> | undefined {
  return json ? parsed(json) : body;
}

/** The parts of a request that are not fields: the raw body, and the headers about bytes and streams. */
export interface Transfer extends Record<VerbHeader, string | null> {
  body: ReadableStream<Uint8Array> | null;
  /** Whether the caller wants a WebSocket. */
  websocket: boolean;
  /** Whether the caller takes lines of JSON, where there is a choice. */
  ndjson: boolean;
}
/** The token of a terminal is the door's to read. */
type VerbHeader = Exclude<OwnHeader, "websocket_protocol">;

/** Of a request that has fields only. */
export const NO_TRANSFER: Transfer = {
  body: null,
  range: null,
  if_match: null,
  if_none_match: null,
  last_event_id: null,
  websocket: false,
  ndjson: false,
};

/** A verb reads no header that its operation does not declare. */
export type TransferOf<Op extends Operation> = Omit<Transfer, VerbHeader> & Pick<Transfer, HeadersOf<Op>>;
type HeadersOf<Op extends Operation> = Op extends { headers: readonly (infer Name)[] } ? Name & VerbHeader : never;

/** A field that breaks a rule beyond its shape. */
export interface RuleBreak extends FieldError {
  /** Code of the whole answer when nothing else is wrong; `code` when that is one of the table. */
  problem?: ErrorCode | undefined;
  /** `details` of the whole answer when nothing else is wrong. */
  details?: Record<string, unknown>;
}

export interface Verb<Op extends Operation, Target> {
  /** Who calls with a token of the noun's own instead of a key. Throws invalid_api_key. */
  admit?(token: string, params: Record<string, string>): Caller;
  find?(call: CallOf<Op>, params: Record<string, string>): Soon<Target>;
  /** `bad` is what the check of shapes found; a rule that names one of these fields again takes its place. */
  rules?(input: Partial<InputOf<Op>>, target: Target, bad: readonly RuleBreak[]): Soon<RuleBreak[]>;
  /** Calls that this one counts as for the caller's rate, besides itself; none if absent. Of checked input. */
  moreCalls?(input: InputOf<Op>, target: Target): number;
  run(call: CallOf<Op>, input: InputOf<Op>, target: Target, transfer: TransferOf<Op>): Soon<Done<Op>>;
}

/** An operation with its verb, its types forgotten, as the road walks it. */
export interface Bound {
  operation: Operation;
  admit: ((token: string, params: Record<string, string>) => Caller) | null;
  find(call: OpenCall, params: Record<string, string>): unknown;
  rules(input: unknown, target: unknown, bad: readonly RuleBreak[]): Soon<RuleBreak[]>;
  moreCalls(input: unknown, target: unknown): number;
  run(call: OpenCall, input: unknown, target: unknown, transfer: Transfer): Soon<Done<Operation>>;
}

/** Binds a verb to its operation. The road checks access and input first, which is what makes the casts here true. */
export function bind<Op extends Operation, Target = undefined>(operation: Op, verb: Verb<NoInfer<Op>, Target>): Bound {
  return {
    operation,
    admit: verb.admit ?? null,
    find: (call, params) => verb.find?.(call as CallOf<Op>, params),
    rules: (input, target, bad) => verb.rules?.(input as Partial<InputOf<Op>>, target as Target, bad) ?? [],
    moreCalls: (input, target) => verb.moreCalls?.(input as InputOf<Op>, target as Target) ?? 0,
    run: (call, input, target, transfer) =>
      verb.run(call as CallOf<Op>, input as InputOf<Op>, target as Target, transfer) as unknown as Soon<
        Done<Operation>
      >,
  };
}
