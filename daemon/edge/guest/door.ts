/**
 * The guest transport: requests that a guest agent sends over its link. The link identifies the caller; nothing that the guest claims about
 * itself counts.
 */
import type { Stream } from "../../../shared/agent-protocol/link.ts";
import {
  Channel,
  ROOM_CALL_HEADERS,
  type RoomCallAnswered,
  StreamErrorCode,
} from "../../../shared/agent-protocol/messages.ts";
import type { KeyId, OrgId, RoomUid, SandboxId } from "../../../shared/ids.ts";
import type { Bound, Caller } from "../../core/call/operation.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import { allowedIn, GUEST_SCOPES } from "./allowed.ts";

/** The sandbox of a guest. */
export interface GuestSandbox {
  sandbox_id: SandboxId;
  org_id: OrgId;
  room_uid: RoomUid;
  room_id: string;
  agent_id: string;
  created_by_id: string;
}

/** Answers a request of an authenticated caller; `within` restricts the operation. Never rejects. */
export type AnswerRequest = (
  request: Request,
  known: { source: "vsock"; recognise(): Caller; within(bound: Bound): Bound },
) => Promise<Response>;

export interface GuestDoorDeps {
  /** Shared by all guests: the route table is large. */
  answer: AnswerRequest;
  planOf(orgId: OrgId): string;
  /** Names of the rooms that this room was made from; its guests may still use them. */
  formerNames(roomUid: RoomUid): readonly string[];
  log: Log;
}

/** Limit of concurrent requests of one guest, most of which wait for messages. */
const MAX_AT_ONCE = 128;
const MAX_PATH = 16 * 1024;
const MAX_HEADER = 4096;
const METHODS: readonly string[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const ANSWERED_HEADERS =
  /^(content-(type|length|range|disposition)|etag|last-modified|location|ratelimit-\w+|retry-after|x-request-id|x-roomd-host)$/;

export function makeGuestDoor(deps: GuestDoorDeps) {
  return (sandbox: GuestSandbox): ((stream: Stream, request: object) => void) => {
    const caller: Caller = {
      kind: "sandbox",
      made_by: sandbox.created_by_id,
      org_id: sandbox.org_id,
      plan: deps.planOf(sandbox.org_id),
      // Scope of its idempotency keys.
      key_id: sandbox.sandbox_id as string as KeyId,
      name: sandbox.agent_id,
      scopes: GUEST_SCOPES,
      room_ids: [sandbox.room_id],
      agent_id: sandbox.agent_id,
      expires_at: null,
    };
    const known = {
      source: "vsock",
      recognise: () => caller,
      within: (bound: Bound) => allowedIn(sandbox, bound),
    } as const;
    let underWay = 0;
    return (stream, request) => {
      if (underWay >= MAX_AT_ONCE) return stream.fail(StreamErrorCode.too_many_streams, "too many concurrent requests");
      underWay++;
      const called = asOwn(request, sandbox.room_id, () => deps.formerNames(sandbox.room_uid));
      serve(stream, called, (made) => deps.answer(made, known))
        .catch((error: unknown) => {
          deps.log.debug("guest request", { sandbox_id: sandbox.sandbox_id, error: describeError(error) });
          stream.fail(StreamErrorCode.invalid_request, "the request cannot be forwarded");
        })
        .finally(() => {
          underWay--;
        });
    };
  };
}

const ROOM_PATH = /^\/v1\/rooms\/([^/?#]+)/;

/** Rewrites the path to the room's own name if it names a room in which this guest was saved: callers here never mean that room. */
function asOwn(request: object, roomId: string, formerNames: () => readonly string[]): object {
  const { path } = request as { path?: unknown };
  const named = typeof path === "string" ? ROOM_PATH.exec(path)?.[1] : undefined;
  if (typeof path !== "string" || named === undefined) return request;
  const name = decoded(named);
  if (name === roomId || !formerNames().includes(name)) return request;
  return { ...request, path: path.replace(ROOM_PATH, () => `/v1/rooms/${encodeURIComponent(roomId)}`) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function serve(stream: Stream, message: object, answer: (request: Request) => Promise<Response>): Promise<void> {
  const cancellation = new AbortController();
  stream.finished.catch(() => {}).finally(() => cancellation.abort());
  const response = await answer(requestOf(stream, message, cancellation.signal));
  const headers = Object.fromEntries([...response.headers].filter(([name]) => ANSWERED_HEADERS.test(name)));
  const answered: RoomCallAnswered = { type: "answered", status: response.status, headers };
  stream.say(answered);
  const reader = response.body?.getReader();
  try {
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      if (!(await stream.write(Channel.stdout, part.value))) return;
    }
    stream.endChannel(Channel.stdout);
    stream.finish(null);
  } finally {
    await reader?.cancel().catch(() => {});
  }
}

/** Everything in a guest's request is untrusted. Throws if it is invalid. */
function requestOf(stream: Stream, message: object, signal: AbortSignal): Request {
  const { http_method, path, headers } = message as Partial<Record<string, unknown>>;
  const method = String(http_method);
  if (!METHODS.includes(method)) throw new Error("there is no such method");
  if (typeof path !== "string" || !path.startsWith("/") || path.length > MAX_PATH) throw new Error("no path");
  const given = Object(headers) as Record<string, unknown>;
  const known = ROOM_CALL_HEADERS.flatMap((name): [string, string][] => {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    return typeof value === "string" && value.length <= MAX_HEADER ? [[name, value]] : [];
  });
  const body = method === "GET" || method === "HEAD" ? null : bodyOf(stream);
  // The name by which guests know their room; it is not resolved.
  const url = new URL(`http://room.internal${path}`);
  return new Request(url.href, { method, headers: known, signal, ...(body ? { body } : {}) });
}

function bodyOf(stream: Stream): ReadableStream<Uint8Array> {
  const chunks = stream.read(Channel.stdin);
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { value, done } = await chunks.next();
      if (!done) return controller.enqueue(value);
      // A closed guest link means a truncated body.
      if (stream.ended) controller.error(new Error("the guest has gone"));
      else controller.close();
    },
  });
}
