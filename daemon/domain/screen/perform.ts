/** Keyboard and pointer input of actions. After any error, keys and buttons that an action pressed are released. */

import type { InputOf } from "../../../shared/api/contract.ts";
import { type computer, DEFAULT_SCROLL } from "../../../shared/api/screen.ts";
import { sleep } from "../../core/clock.ts";
import { type Chord, chordsOf, chordsOfText } from "./keysyms.ts";
import type { Scale } from "./places.ts";
import type { RfbClient } from "./rfb/client.ts";
import { Button } from "./rfb/messages.ts";

type Input = InputOf<typeof computer>;

const CLICKS: Readonly<Partial<Record<Input["action"], { button: number; times: number }>>> = {
  left_click: { button: Button.left, times: 1 },
  middle_click: { button: Button.middle, times: 1 },
  right_click: { button: Button.right, times: 1 },
  double_click: { button: Button.left, times: 2 },
  triple_click: { button: Button.left, times: 3 },
};
const WHEEL = { up: Button.up, down: Button.down, left: Button.toLeft, right: Button.toRight } as const;
/** Intermediate points of a drag: programs start a drag only after some motion. */
const DRAG_STEPS = 8;
/** Waits for the server after this many characters: it has to create keys for those missing on its keyboard. */
const TYPED_AT_ONCE = 32;

export async function perform(client: RfbClient, input: Input, scale: Scale, signal: AbortSignal): Promise<void> {
  const { action, text = "", duration_ms = 0 } = input;
  const wait = () => sleep(duration_ms, signal);
  if (action === "wait") await wait();
  else if (action === "type") await type(client, text, signal);
  else if (action === "key") pressAll(client, readable(chordsOf(text)));
  else if (action === "hold_key") await holding(client, text, wait);
  else await holding(client, input.key, () => usePointer(client, input, scale));
}

function usePointer(client: RfbClient, input: Input, scale: Scale): void {
  const { action, coordinate, start_coordinate, scroll_direction, scroll_amount = DEFAULT_SCROLL } = input;
  const { buttons, pointer } = client;
  const place = coordinate ? scale.real(coordinate) : pointer;
  const from = start_coordinate ? scale.real(start_coordinate) : pointer;
  const isDrag = action === "left_click_drag";
  // The pointer moves before buttons are pressed there.
  if (coordinate && !isDrag) client.point(place.x, place.y, buttons);
  const click = CLICKS[action];
  if (isDrag) drag(client, from, place);
  else if (click) press(client, place, click.button, click.times);
  else if (scroll_direction) press(client, place, WHEEL[scroll_direction], scroll_amount);
  else if (action === "left_mouse_down") client.point(place.x, place.y, buttons | Button.left);
  else if (action === "left_mouse_up") client.point(place.x, place.y, buttons & ~Button.left);
}

function press(client: RfbClient, { x, y }: { x: number; y: number }, button: number, times: number): void {
  const others = client.buttons & ~button;
  for (let left = times; left > 0; left--) {
    client.point(x, y, others | button);
    client.point(x, y, others);
  }
}

function drag(client: RfbClient, from: { x: number; y: number }, to: { x: number; y: number }): void {
  const others = client.buttons & ~Button.left;
  client.point(from.x, from.y, others);
  for (let step = 0; step <= DRAG_STEPS; step++) {
    const between = (one: number, other: number) => Math.round(one + ((other - one) * step) / DRAG_STEPS);
    client.point(between(from.x, to.x), between(from.y, to.y), others | Button.left);
  }
  client.point(to.x, to.y, others);
}

function pressAll(client: RfbClient, chords: readonly Chord[]): void {
  for (const chord of chords) {
    for (const key of chord) client.key(key, true);
    for (const key of chord.toReversed()) client.key(key, false);
  }
}

/** Executes `work` while all of the given keys are pressed. */
async function holding(client: RfbClient, names: string | undefined, work: () => Promise<void> | void): Promise<void> {
  const keys = names === undefined ? [] : readable(chordsOf(names)).flat();
  for (const key of keys) client.key(key, true);
  try {
    await work();
  } finally {
    for (const key of keys.toReversed()) client.key(key, false);
  }
}

async function type(client: RfbClient, text: string, signal: AbortSignal): Promise<void> {
  const chords = readable(chordsOfText(text));
  for (let at = 0; at < chords.length; at += TYPED_AT_ONCE) {
    if (at > 0) await client.current(signal);
    pressAll(client, chords.slice(at, at + TYPED_AT_ONCE));
  }
}

/** Input that passed validation is readable. */
function readable(read: { chords: Chord[] } | { bad: string }): Chord[] {
  return "chords" in read ? read.chords : [];
}
