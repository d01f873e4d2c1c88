/** Interface of screens: a screenshot of a sandbox, its keyboard and mouse, and a live view by WebSocket. */
import { Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, timestamp } from "./contract.ts";
import { REACH_ERRORS, sandboxPath } from "./sandboxes.ts";

export const COMPUTER_ACTIONS = [
  "screenshot",
  "cursor_position",
  "mouse_move",
  "left_click",
  "right_click",
  "middle_click",
  "double_click",
  "triple_click",
  "left_click_drag",
  "left_mouse_down",
  "left_mouse_up",
  "scroll",
  "key",
  "hold_key",
  "type",
  "wait",
  "zoom",
] as const;
export type ComputerAction = (typeof COMPUTER_ACTIONS)[number];

export const SCROLL_DIRECTIONS = ["up", "down", "left", "right"] as const;
export const DEFAULT_SCROLL = 3;
const MAX_SCROLL = 100;
const MAX_TYPED = 10_000;
const MAX_WAIT_MS = 30_000;
const NARROWEST = 16;
const WIDEST = 4096;

const width = Type.Optional(
  Type.Integer({
    minimum: NARROWEST,
    maximum: WIDEST,
    description: "Width of the picture, which keeps its proportions; the screen's own if absent or larger than that.",
  }),
);
const axis = Type.Integer({ minimum: 0, maximum: WIDEST });
const point = (description: string) =>
  Type.Optional(Type.Array(axis, { minItems: 2, maxItems: 2, description, examples: [[640, 400]] }));

const PICTURE =
  "The picture, a PNG. null if none was requested. Except for screenshot and zoom it is also null if the action was done and its picture would be larger than 4 MiB, or too many are being taken: then take one with screenshot.";

export const screenGet = operation({
  name: "screen_get",
  extension: "screen",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/screen",
  summary: "Take a screenshot of a sandbox",
  description:
    "A PNG of the screen, with the pointer. A sandbox without a screen answers 409 invalid_state; those of the template desktop have one.",
  access: "exec",
  watched: true,
  params: sandboxPath,
  query: fields({ width }),
  body: null,
  output: Type.Unknown(),
  outcomes: { ok: 200 },
  bytesOutput: ["image/png"],
  errors: [...REACH_ERRORS],
  audit: "screen.read",
});

export const computer = operation({
  name: "computer",
  extension: "screen",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/computer",
  summary: "Use a sandbox's screen, keyboard and mouse",
  description: [
    "Performs one action on the screen and answers with a picture, taken once nothing has changed for 150 ms, and after 3 s at the latest. Actions have the names that models for computer use know. One sandbox does one action at a time.",
    "Coordinates are those of the picture of the requested width: send the same width with every call. The answer has the size of the picture of the whole screen.",
    "key and hold_key take names of keys in text: Return, ctrl+c, super, Page_Down; several, separated by spaces, are pressed in sequence. type takes any text, but of characters that the screen's keyboard lacks only some dozens of different ones. zoom answers with region in the screen's resolution, reduced only if it is wider than width.",
  ].join("\n\n"),
  access: "exec",
  params: sandboxPath,
  query: fields({}),
  body: fields({
    action: oneOf(COMPUTER_ACTIONS, { description: "The action." }),
    coordinate: point("Position: [x, y]. Clicks and scroll act at the pointer's position if absent."),
    start_coordinate: point("Start of left_click_drag; the pointer's position if absent."),
    text: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MAX_TYPED,
        description: "Text to type, or for key and hold_key the names of the keys.",
      }),
    ),
    key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: "Keys that are held during a click, a drag or a scroll, such as shift or ctrl+alt.",
      }),
    ),
    scroll_direction: Type.Optional(oneOf(SCROLL_DIRECTIONS, { description: "Direction of scroll." })),
    scroll_amount: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_SCROLL,
        description: `Notches of the mouse's wheel; ${DEFAULT_SCROLL} if absent.`,
      }),
    ),
    duration_ms: Type.Optional(
      Type.Integer({ minimum: 0, maximum: MAX_WAIT_MS, description: "Duration of wait or hold_key." }),
    ),
    region: Type.Optional(
      Type.Array(axis, {
        minItems: 4,
        maxItems: 4,
        description: "Region of zoom: [left, top, right, bottom].",
        examples: [[0, 0, 320, 200]],
      }),
    ),
    width,
    screenshot: Type.Optional(
      Type.Boolean({
        description:
          "Whether the answer has a picture; true if absent, except for cursor_position. screenshot and zoom always have one.",
      }),
    ),
  }),
  output: fields({
    action: oneOf(COMPUTER_ACTIONS),
    width: Type.Integer({ description: "Of the picture of the whole screen: coordinates are smaller than this." }),
    height: Type.Integer(),
    cursor: Type.Array(Type.Integer(), { minItems: 2, maxItems: 2, description: "Position of the pointer: [x, y]." }),
    screenshot_b64: nullable(Type.String({ contentEncoding: "base64", description: PICTURE })),
  }),
  outcomes: { ok: 200 },
  errors: [...REACH_ERRORS],
  audit: "screen.used",
  example: { body: { action: "left_click", coordinate: [640, 400], width: 1280 } },
});

/** Maximum of concurrent live viewers of one screen, and of all screens of an organization. */
export const MAX_VIEWERS = 16;
export const MAX_VIEWERS_OF_ORG = 100;
/** Bounds in pixels for the size that a controlling client may give a screen. */
export const SCREEN_SIZE = { least: { width: 320, height: 200 }, most: { width: WIDEST, height: WIDEST } } as const;
/** Maximum bytes of one frame from a client. */
export const MAX_SCREEN_FRAME_BYTES = 64 * 1024;

/** Close codes of a screen's WebSocket, sent by the service. */
export const SCREEN_CLOSE = {
  /** The service is stopping; connect again. */
  going_away: 1001,
  /** The message is not a valid one of an RFB 3.8 client. */
  bad_message: 4000,
  /** The key or session of the connection is no longer valid. */
  unauthorized: 4002,
  /** The sandbox is no longer running; the reason names its state. */
  sandbox_stopped: 4003,
  /** The connection to the guest's screen was lost; connect again. */
  guest_unreachable: 4004,
  /** The client sent more than the guest accepted, or more messages than any viewer sends. */
  input_overflow: 4005,
} as const;
export type ScreenClose = keyof typeof SCREEN_CLOSE;

export const screenTicket = operation({
  name: "screen_ticket",
  extension: "screen",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/ticket",
  summary: "Create a ticket for a sandbox's screen",
  description:
    "With a ticket, a viewer without an API key, such as a page with noVNC, sees the screen live; with drive also its keyboard and mouse control it. Tickets are short-lived and end with a restart of the service.",
  access: "exec",
  params: sandboxPath,
  query: NONE,
  body: fields({
    drive: Type.Optional(
      Type.Boolean({
        description: "Whether keys, pointer and clipboard reach the screen; false if absent: view only.",
      }),
    ),
  }),
  output: fields({
    ws_path: Type.String({ description: "URL to connect to, with the ticket in its query." }),
    ticket: Type.String({
      description:
        "Opens this screen and nothing else until expires_at, as often as needed. Its connections continue after that, while the key that made it is valid.",
    }),
    drives: Type.Boolean(),
    expires_at: timestamp,
  }),
  outcomes: { created: 201 },
  errors: [...REACH_ERRORS],
  onFullDisk: true,
  secretOutput: true,
  audit: "screen.ticket_made",
  example: { body: { drive: true } },
});

export const screenView = operation({
  name: "screen_view",
  extension: "screen",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/screen/ws",
  summary: "View a sandbox's screen live, by WebSocket",
  description: [
    "Speaks RFB 3.8 with the screen's own server in binary frames, as noVNC does: without a password, and shared with other viewers. Authorized by a ticket, in the query or as the subprotocol `roomd.token.TICKET` next to `binary`, by an API key as Bearer, or by a person's session. Keys, pointer and clipboard pass only with a ticket that was made with drive; from other viewers the service drops them. A browser's Origin must be the service's own.",
    `A viewer with drive may request another size, of ${SCREEN_SIZE.least.width}x${SCREEN_SIZE.least.height} to ${SCREEN_SIZE.most.width}x${SCREEN_SIZE.most.height}; other sizes are dropped. Text copied on the screen is sent to viewers with drive only. A viewer without drive must name the encoding of the extended clipboard, -1063131698; noVNC does.`,
    `Up to ${MAX_VIEWERS} may view a screen, and ${MAX_VIEWERS_OF_ORG} all screens of an organization. A sandbox that is only viewed is idle. The connection is pinged and ends when no pong comes for a minute.`,
    `Close codes: ${Object.entries(SCREEN_CLOSE)
      .map(([name, code]) => `${code} ${name}`)
      .join(", ")}; 1009 for a frame of over ${MAX_SCREEN_FRAME_BYTES} bytes.`,
  ].join("\n\n"),
  access: "exec",
  watched: true,
  params: sandboxPath,
  headers: ["websocket_protocol"],
  query: fields({
    ticket: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: "From screen_ticket." })),
  }),
  body: null,
  output: Type.Unknown(),
  outcomes: { attached: 101 },
  errors: [...REACH_ERRORS, "source_mismatch"],
  audit: "screen.watched",
});
