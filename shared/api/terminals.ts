/** Interface of terminals: a command on its own pseudo-terminal, reached by WebSocket. */
import { Type } from "@sinclair/typebox";
import { errorEvent, fields, NONE, named, nullable, oneOf, operation, page, record, timestamp } from "./contract.ts";
import { sandboxPath, WAKING_ERRORS } from "./sandboxes.ts";

export const MAX_ROWS_OR_COLS = 1000;
export const MAX_LIVE_TERMINALS = 16;
export const DEFAULT_TERM = "xterm-256color";
/** Subprotocol of the WebSocket, which a client offers and the server selects; the token is offered as a second one. */
export const TERMINAL_PROTOCOL = "roomd.terminal";
export const TOKEN_PROTOCOL_PREFIX = "roomd.token.";
/** Maximum bytes of one frame from a client. */
export const MAX_FRAME_BYTES = 1024 * 1024;
/** Maximum bytes of typed input that the guest has not yet accepted; a client that exceeds it is disconnected. */
export const MAX_TYPED_BYTES = 8 * 1024 * 1024;

/** Close codes of a terminal's WebSocket, sent by the service, besides 1000 after the exit frame. */
export const TERMINAL_CLOSE = {
  /** The service is stopping; attach again with since. */
  going_away: 1001,
  /** The frame is not one that a client may send. */
  bad_frame: 4000,
  /** Another client attached with takeover=1. */
  taken_over: 4001,
  /** The key with which the client attached has been revoked or has expired. */
  unauthorized: 4002,
  /** The sandbox is no longer running; the reason names its state. */
  sandbox_stopped: 4003,
  /** The guest's connection was lost; attach again with since. */
  guest_unreachable: 4004,
  /** The client typed more than the guest accepted. */
  input_overflow: 4005,
} as const;
export type TerminalClose = keyof typeof TERMINAL_CLOSE;

const size = { minimum: 1, maximum: MAX_ROWS_OR_COLS };

const terminal = record("Terminal", {
  terminal_id: Type.String(),
  state: oneOf(["running", "ended"]),
  command: Type.String({ description: "The command, truncated to 256 characters." }),
  user: Type.String(),
  rows: Type.Integer(),
  cols: Type.Integer(),
  attached: Type.Boolean(),
  offset: Type.Integer({ description: "How many bytes it has shown so far." }),
  exit_code: nullable(Type.Integer()),
  signal: nullable(Type.String()),
  end_reason: nullable(
    oneOf(["exited", "detached", "closed"], {
      description:
        "Why it ended: the command exited, no client was attached for too long, or it was closed. Null while it runs.",
    }),
  ),
  created_at: timestamp,
  ended_at: nullable(timestamp),
});

const ticket = record("TerminalTicket", {
  terminal_id: Type.String(),
  ws_path: Type.String({ description: "URL to attach to; since and takeover can be added to its query." }),
  token: Type.String({
    description: `Opens this terminal and nothing else until expires_at, as often as needed, while the key that made it is valid: offer the subprotocols ${TERMINAL_PROTOCOL} and ${TOKEN_PROTOCOL_PREFIX}TOKEN.`,
  }),
  expires_at: timestamp,
});

const terminalPath = fields({
  ...sandboxPath.properties,
  terminal_id: Type.String({ pattern: "^[A-Za-z0-9_]{1,64}$" }),
});

export const terminalCreate = operation({
  name: "terminal_create",
  extension: "terminals",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals",
  summary: "Open a terminal",
  description:
    "Starts the user's login shell, or a command, in a new terminal. It keeps running without a client for 10 minutes after the last one has left, also when the service is restarted. Then it is closed, with the reason detached in its record. The last MiB of its output can be shown again. Background processes of a shell keep running after it ends, as after any login, until the terminal is deleted. To follow the output of a command, use an execution.",
  access: "terminal",
  params: sandboxPath,
  query: NONE,
  body: fields({
    rows: Type.Integer(size),
    cols: Type.Integer(size),
    command: Type.Optional(
      Type.String({
        minLength: 1,
        code: "invalid_command",
        description: "A line that /bin/sh -c runs; the login shell if absent.",
      }),
    ),
    argv: Type.Optional(
      Type.Array(Type.String(), {
        minItems: 1,
        maxItems: 1024,
        code: "invalid_command",
        description: "Instead of command: the command and its arguments, run without a shell.",
      }),
    ),
    cwd: Type.Optional(
      Type.String({ minLength: 1, maxLength: 4096, description: "Working directory; the user's home if absent." }),
    ),
    user: Type.Optional(
      Type.String({ pattern: "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$", description: "User name or id; root if absent." }),
    ),
    term: Type.Optional(
      Type.String({
        pattern: "^[A-Za-z0-9][\\w.+-]{0,63}$",
        description: `TERM of the command; ${DEFAULT_TERM} if absent.`,
      }),
    ),
  }),
  output: ticket,
  outcomes: { created: 201 },
  location: "/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals/{terminal_id}",
  errors: [
    "room_not_found",
    "sandbox_not_found",
    "invalid_state",
    "room_destroying",
    "invalid_command",
    "cwd_not_found",
    "too_many_executions",
    "guest_unreachable",
    "disk_full",
    ...WAKING_ERRORS,
  ],
  onFullDisk: true,
  secretOutput: true,
  audit: "exec.terminal_opened",
  example: { body: { rows: 24, cols: 80 } },
});

export const terminalList = operation({
  name: "terminal_list",
  extension: "terminals",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals",
  summary: "List a sandbox's terminals",
  description: "Running terminals, and terminals ended in the last 10 minutes.",
  access: "terminal",
  watched: true,
  params: sandboxPath,
  query: NONE,
  body: null,
  output: page(terminal),
  outcomes: { ok: 200 },
  errors: [
    "room_not_found",
    "sandbox_not_found",
    "invalid_state",
    "room_destroying",
    "disk_full",
    "guest_unreachable",
    ...WAKING_ERRORS,
  ],
  audit: "exec.terminal_listed",
});

const KNOWN_ERRORS = [
  "room_not_found",
  "sandbox_not_found",
  "execution_not_found",
  "invalid_state",
  "room_destroying",
  "guest_unreachable",
  "disk_full",
] as const;

export const terminalGet = operation({
  name: "terminal_get",
  extension: "terminals",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals/{terminal_id}",
  summary: "Get a terminal",
  access: "terminal",
  watched: true,
  params: terminalPath,
  query: NONE,
  body: null,
  output: terminal,
  outcomes: { ok: 200 },
  errors: [...KNOWN_ERRORS, ...WAKING_ERRORS],
  audit: "exec.terminal_read",
});

export const terminalClose = operation({
  name: "terminal_close",
  extension: "terminals",
  method: "DELETE",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals/{terminal_id}",
  summary: "End a terminal",
  description: "Sends SIGHUP to everything started in it, background processes too, and kills the rest after 5 s.",
  access: "terminal",
  params: terminalPath,
  query: NONE,
  body: null,
  output: fields({
    terminal_id: Type.String(),
    state: oneOf(["ended"]),
    exit_code: nullable(Type.Integer()),
    signal: nullable(Type.String()),
  }),
  outcomes: { ended: 200 },
  errors: [...KNOWN_ERRORS, ...WAKING_ERRORS],
  audit: "exec.terminal_closed",
});

export const terminalToken = operation({
  name: "terminal_token",
  extension: "terminals",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals/{terminal_id}/token",
  summary: "Make another token for a terminal",
  description: "Tokens are short-lived and end with a restart of the service; the terminal does not.",
  access: "terminal",
  params: terminalPath,
  query: NONE,
  body: NONE,
  output: ticket,
  outcomes: { created: 201 },
  errors: [...KNOWN_ERRORS, ...WAKING_ERRORS],
  onFullDisk: true,
  secretOutput: true,
  audit: "exec.terminal_token_made",
  example: { body: {} },
});

export const terminalAttach = operation({
  name: "terminal_attach",
  extension: "terminals",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals/{terminal_id}/ws",
  summary: "Attach to a terminal by WebSocket",
  description: [
    `Authorized by the terminal's token as a subprotocol (\`Sec-WebSocket-Protocol: ${TERMINAL_PROTOCOL}, ${TOKEN_PROTOCOL_PREFIX}TOKEN\`), never in the query, or by an API key as Bearer. A browser's Origin must be the service's own.`,
    'Binary frames are bytes, both ways. Text frames from the service: first {"type":"attached","offset","rows","cols","gap"}, where offset is that of the first byte that follows and gap the number of earlier bytes that are no longer kept; last {"type":"exit","exit_code","signal"}. Text frames from the client: {"type":"resize","rows","cols"}, and {"type":"flow","paused"} to pause or resume the output. Count the bytes and attach again with since=OFFSET to continue after a broken connection.',
    "A client that reads slowly makes the command wait; nothing is dropped. The connection is pinged and ends when no pong comes for a minute.",
    `Close codes: 1000 after the exit frame, ${Object.entries(TERMINAL_CLOSE)
      .map(([name, code]) => `${code} ${name}`)
      .join(", ")}; 1009 for a frame of over ${MAX_FRAME_BYTES} bytes.`,
  ].join("\n\n"),
  access: "terminal",
  params: terminalPath,
  query: fields({
    since: Type.Optional(
      Type.Integer({ minimum: 0, description: "Offset of the first byte wanted; all that is kept if absent." }),
    ),
    takeover: Type.Optional(
      Type.Boolean({
        description: "Whether to disconnect the client that is attached; otherwise a second client gets 409.",
      }),
    ),
  }),
  headers: ["websocket_protocol"],
  body: null,
  output: Type.Unknown(),
  outcomes: { attached: 101 },
  errors: [...KNOWN_ERRORS, ...WAKING_ERRORS, "source_mismatch"],
  audit: "exec.terminal_attached",
});

/** Maximum of concurrent watchers of one terminal, and of all terminals of an organization. */
export const MAX_WATCHERS = 32;
export const MAX_WATCHERS_OF_ORG = 200;

const typist = nullable(
  fields({
    name: Type.String({ description: "Name of the key, or of the person, by which the client attached." }),
    since: timestamp,
  }),
);
const screen = { rows: Type.Integer(), cols: Type.Integer() };
const offset = Type.Integer({
  description: "Position of the first byte that follows, in the terminal's whole output.",
});

/** Events for a terminal's watchers, besides pings. */
const watchEvent = named(
  "TerminalEvent",
  Type.Union([
    record("WatchingEvent", {
      type: oneOf(["watching"]),
      offset,
      ...screen,
      gap: Type.Integer({ description: "Bytes before it that are no longer kept." }),
      typist,
    }),
    fields({
      type: oneOf(["output"]),
      offset: Type.Integer({ description: "Position of its first byte; `after` is this and its length." }),
      data_b64: Type.String({ contentEncoding: "base64" }),
    }),
    fields({ type: oneOf(["resized"]), ...screen }),
    fields({ type: oneOf(["typist"]), typist }),
    fields({ type: oneOf(["lost"]), offset, gap: Type.Integer({ description: "Bytes that were left out." }) }),
    fields({ type: oneOf(["exit"]), exit_code: nullable(Type.Integer()), signal: nullable(Type.String()) }),
    errorEvent,
  ]),
);

export const terminalWatch = operation({
  name: "terminal_watch",
  extension: "terminals",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/terminals/{terminal_id}/watch",
  summary: "Watch a terminal",
  description: [
    "Streams the terminal's output, without typing: lines of JSON, or server-sent events if Accept requests them. First watching, then output with its bytes in data_b64, resized, typist when a client attaches or leaves, ping every 15 s, and last exit or error. A stream without one of these two is not complete: call again with after.",
    `Up to ${MAX_WATCHERS} may watch a terminal, and ${MAX_WATCHERS_OF_ORG} all terminals of an organization. They disturb no other client: the command and the client that types never wait for them. A client that reads too slowly gets lost, with the number of bytes left out. A terminal that is only watched still ends after 10 minutes without a client, and a sandbox that is only watched is idle. While the sandbox is paused the stream stays open.`,
  ].join("\n\n"),
  access: "terminal",
  watched: true,
  params: terminalPath,
  query: fields({
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "How many bytes you have seen; all that is kept is sent if absent.",
      }),
    ),
  }),
  body: null,
  headers: ["last_event_id"],
  output: watchEvent,
  outcomes: { ok: 200 },
  bytesOutput: ["application/x-ndjson", "text/event-stream"],
  errors: [...KNOWN_ERRORS, "too_many_executions"],
  audit: "exec.terminal_watched",
});
