/** The interface of live data: a room's current state, streamed, and one connection that carries all streams of a page. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, named, oneOf, operation, record, timestamp } from "../contract.ts";
import { roomPath } from "../rooms.ts";
import { MAX_WAITED_FOR, MAX_WAITS, wait } from "./overview.ts";

const runningCommand = record("RunningCommand", {
  agent_id: Type.String(),
  exec_id: Type.String(),
  command: Type.String({ description: "One line; credentials are redacted." }),
  since: timestamp,
});

export type RunningCommand = Static<typeof runningCommand>;

const deadlock = fields({
  agents: Type.Array(Type.String(), { description: "Each waits for the next, the last for the first." }),
  text: Type.String({ description: "The same as a sentence." }),
});

const nowLine = record("RoomNow", {
  type: oneOf(["now"]),
  at: timestamp,
  waits: Type.Array(wait, {
    maxItems: MAX_WAITS,
    description: `As of room_waits, the oldest first, each for at most ${MAX_WAITED_FOR} agents; without commands.`,
  }),
  commands: Type.Array(runningCommand, { description: "Commands that are running, the oldest first." }),
  deadlocks: Type.Array(deadlock),
  truncated: Type.Boolean({ description: "Whether there are more waits." }),
});

const commandLine = record("CommandLine", {
  type: oneOf(["command"]),
  state: oneOf(["running", "ended"]),
  agent_id: Type.String(),
  exec_id: Type.String(),
  command: Type.String(),
  since: timestamp,
});

const deadlockLine = record("DeadlockLine", {
  type: oneOf(["deadlock"]),
  agents: Type.Array(Type.String()),
  text: Type.String(),
});

export const roomNow = operation({
  name: "room_now",
  extension: "live",
  method: "GET",
  path: "/v1/rooms/{room_id}/now",
  summary: "Stream the current state of a room",
  description:
    "Lines of JSON, or server-sent events if Accept requests them. A line `now` is the whole state: running commands, waits and deadlocks; the first line is one, and another follows each change, several times a second at most. A line `command` reports the start or end of one command, a line `deadlock` a new deadlock between agents. These lines have no id and are not recorded. `ping` every 15 s; `error` if the stream breaks; the stream ends when the room is destroyed.",
  access: "fabric:read",
  params: roomPath,
  query: fields({
    follow: Type.Optional(Type.Boolean({ description: "Whether to wait for changes; true if absent." })),
  }),
  body: null,
  output: named("RoomNowLine", Type.Union([nowLine, commandLine, deadlockLine])),
  outcomes: { ok: 200 },
  bytesOutput: ["application/x-ndjson", "text/event-stream"],
  errors: ["room_not_found", "rate_limited"],
  audit: "room.followed",
  example: { query: { follow: "false" } },
});

/** Maximum concurrent streams of one connection. */
export const MAX_LIVE_STREAMS = 32;
/** Maximum bytes of a frame from the client. */
export const MAX_LIVE_FRAME_BYTES = 8 * 1024;

/** Unconfirmed bytes of a stream, above which the stream waits for the client. */
export const MAX_UNREAD_BYTES = 1024 * 1024;

/** Streaming operations that a connection can carry. */
export const LIVE_OPERATIONS = [
  "room_now",
  "room_events",
  "org_events",
  "execution_stream",
  "terminal_watch",
  "template_build_stream",
] as const;

export const LIVE_CLOSE = {
  /** The service is stopping. */
  going_away: 1001,
  /** A frame was not a valid request. */
  bad_frame: 4000,
  /** The key or session was revoked, or has expired. */
  unauthorized: 4002,
  /** The client did not read for a minute. */
  too_slow: 4008,
} as const;

export const liveSocket = operation({
  name: "live_socket",
  extension: "live",
  method: "GET",
  path: "/v1/live/ws",
  summary: "Carry several streams over one WebSocket",
  description: [
    `A browser opens at most six connections of HTTP/1.1 to a service; WebSockets are not counted. One connection carries up to ${MAX_LIVE_STREAMS} streams of these operations: ${LIVE_OPERATIONS.join(", ")}. Authorized by an API key as Bearer, or by a person's session; a browser's Origin must be the service's own. Each stream is checked and recorded as a call of its own, with the scope of its operation.`,
    'Text frames from the client: {"op":"open","id","path"} opens a stream: id is a positive integer, path the path of the operation with its query; {"op":"read","id","bytes"} confirms bytes of data that the client has processed; {"op":"close","id"} ends the stream.',
    'Text frames from the service: {"id","type":"opened","headers"}, {"id","type":"refused","status","retry_after","problem"}, and {"id","type":"ended"} at the end of a stream. Binary frames are data of a stream: its id in decimal digits, a line feed, and bytes of its lines of JSON, in order.',
    `A stream waits while ${MAX_UNREAD_BYTES} bytes of its data are unconfirmed. A client that does not read makes all its streams wait, and is disconnected after a minute. Close codes: ${Object.entries(
      LIVE_CLOSE,
    )
      .map(([name, code]) => `${code} ${name}`)
      .join(", ")}; 1009 for a frame of over ${MAX_LIVE_FRAME_BYTES} bytes.`,
  ].join("\n\n"),
  access: "key",
  params: NONE,
  query: NONE,
  body: null,
  output: Type.Unknown(),
  outcomes: { opened: 101 },
  errors: ["validation_failed", "source_mismatch", "rate_limited"],
  audit: null,
});
