/** Owns the interface of screens: a picture of what a sandbox shows, and its keyboard and mouse. */
import { Type } from "@sinclair/typebox";
import { fields, nullable, oneOf, operation } from "./contract.ts";
import { sandboxPath } from "./sandboxes.ts";

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
const MOST_SCROLL = 100;
const MOST_TYPED = 10_000;
const MOST_WAIT_MS = 30_000;
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
  "The picture, a PNG. null where none was asked for. Except for screenshot and zoom it is null too when the action was done and its picture would be larger than 4 MiB, or too many are being taken: take one by screenshot then.";

const READ_ERRORS = [
  "room_not_found",
  "sandbox_not_found",
  "invalid_state",
  "room_destroying",
  "guest_unreachable",
  "insufficient_capacity",
  "disk_full",
] as const;

export const screenGet = operation({
  name: "screen_get",
  extension: "screen",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/screen",
  summary: "Take a picture of a sandbox's screen",
  description:
    "A PNG of what the screen shows now, with the pointer. A sandbox without a screen answers 409 invalid_state; those of the template desktop have one.",
  access: "exec",
  watched: true,
  params: sandboxPath,
  query: fields({ width }),
  body: null,
  output: Type.Unknown(),
  outcomes: { ok: 200 },
  bytesOutput: ["image/png"],
  errors: [...READ_ERRORS],
  audit: "screen.read",
});

export const computer = operation({
  name: "computer",
  extension: "screen",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/computer",
  summary: "Use a sandbox's screen, keyboard and mouse",
  description: [
    "Does one thing at the screen and answers with a picture, taken once nothing has changed for 150 ms, and after 3 s at the latest. Actions have the names that models for computer use know. One sandbox does one action at a time.",
    "Coordinates are those of the picture that you asked for by width: send the same width with every call. The answer says how large the picture of the whole screen is.",
    "key and hold_key take names of keys in text: Return, ctrl+c, super, Page_Down; several with spaces between are pressed one after the other. type takes any text, but of characters that the screen's keyboard lacks only some dozens of different ones. zoom answers with region as the screen has it, not made smaller unless it is wider than width.",
  ].join("\n\n"),
  access: "exec",
  params: sandboxPath,
  query: fields({}),
  body: fields({
    action: oneOf(COMPUTER_ACTIONS, { description: "What to do." }),
    coordinate: point("Where: [x, y]. Clicks and scroll act at the pointer's place if absent."),
    start_coordinate: point("Where left_click_drag begins; at the pointer's place if absent."),
    text: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: MOST_TYPED,
        description: "What to type, or for key and hold_key the names of the keys.",
      }),
    ),
    key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: "Keys that are held during a click, a drag or a scroll, such as shift or ctrl+alt.",
      }),
    ),
    scroll_direction: Type.Optional(oneOf(SCROLL_DIRECTIONS, { description: "Where scroll goes." })),
    scroll_amount: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MOST_SCROLL,
        description: `Notches of the mouse's wheel; ${DEFAULT_SCROLL} if absent.`,
      }),
    ),
    duration_ms: Type.Optional(
      Type.Integer({ minimum: 0, maximum: MOST_WAIT_MS, description: "How long wait waits, or hold_key holds." }),
    ),
    region: Type.Optional(
      Type.Array(axis, {
        minItems: 4,
        maxItems: 4,
        description: "What zoom shows: [left, top, right, bottom].",
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
    cursor: Type.Array(Type.Integer(), { minItems: 2, maxItems: 2, description: "Where the pointer is: [x, y]." }),
    screenshot_b64: nullable(Type.String({ contentEncoding: "base64", description: PICTURE })),
  }),
  outcomes: { ok: 200 },
  errors: [...READ_ERRORS],
  audit: "screen.used",
  example: { body: { action: "left_click", coordinate: [640, 400], width: 1280 } },
});
