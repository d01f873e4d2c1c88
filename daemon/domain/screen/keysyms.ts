/**
 * Names of keys: those of X11, as xdotool and computer-use models write them, and other names that models use for the same keys. Every
 * character is a key too (its keysym derives from its code point), so typing needs no keyboard layout.
 */

/** Named keys, by name in lower case. Values are those of X11's keysymdef.h. */
const NAMED: ReadonlyMap<string, number> = new Map(
  Object.entries({
    ...{ backspace: 0xff08, tab: 0xff09, linefeed: 0xff0a, clear: 0xff0b, return: 0xff0d, enter: 0xff0d },
    ...{
      pause: 0xff13,
      scroll_lock: 0xff14,
      sys_req: 0xff15,
      escape: 0xff1b,
      esc: 0xff1b,
      delete: 0xffff,
      del: 0xffff,
    },
    ...{ home: 0xff50, left: 0xff51, up: 0xff52, right: 0xff53, down: 0xff54 },
    ...{ arrowleft: 0xff51, arrowup: 0xff52, arrowright: 0xff53, arrowdown: 0xff54 },
    ...{ prior: 0xff55, page_up: 0xff55, pageup: 0xff55, pgup: 0xff55 },
    ...{ next: 0xff56, page_down: 0xff56, pagedown: 0xff56, pgdn: 0xff56 },
    ...{ end: 0xff57, begin: 0xff58, select: 0xff60, print: 0xff61, printscreen: 0xff61, execute: 0xff62 },
    ...{ insert: 0xff63, undo: 0xff65, redo: 0xff66, menu: 0xff67, find: 0xff68, cancel: 0xff69, help: 0xff6a },
    ...{ break: 0xff6b, num_lock: 0xff7f, numlock: 0xff7f, caps_lock: 0xffe5, capslock: 0xffe5 },
    ...{ shift: 0xffe1, shift_l: 0xffe1, shift_r: 0xffe2, ctrl: 0xffe3, control: 0xffe3 },
    ...{ control_l: 0xffe3, control_r: 0xffe4, ctrl_l: 0xffe3, ctrl_r: 0xffe4, meta: 0xffe7, meta_l: 0xffe7 },
    ...{ meta_r: 0xffe8, alt: 0xffe9, alt_l: 0xffe9, alt_r: 0xffea, option: 0xffe9, altgr: 0xfe03 },
    ...{ iso_level3_shift: 0xfe03, iso_left_tab: 0xfe20 },
    ...{ super: 0xffeb, super_l: 0xffeb, super_r: 0xffec, win: 0xffeb, windows: 0xffeb, cmd: 0xffeb, command: 0xffeb },
    ...{ hyper: 0xffed, hyper_l: 0xffed, hyper_r: 0xffee },
    ...{ kp_space: 0xff80, kp_tab: 0xff89, kp_enter: 0xff8d, kp_home: 0xff95, kp_left: 0xff96, kp_up: 0xff97 },
    ...{ kp_right: 0xff98, kp_down: 0xff99, kp_prior: 0xff9a, kp_page_up: 0xff9a, kp_next: 0xff9b },
    ...{ kp_page_down: 0xff9b, kp_end: 0xff9c, kp_begin: 0xff9d, kp_insert: 0xff9e, kp_delete: 0xff9f },
    ...{ kp_equal: 0xffbd, kp_multiply: 0xffaa, kp_add: 0xffab, kp_separator: 0xffac, kp_subtract: 0xffad },
    ...{ kp_decimal: 0xffae, kp_divide: 0xffaf },
    ...{ space: 0x20, exclam: 0x21, quotedbl: 0x22, numbersign: 0x23, dollar: 0x24, percent: 0x25, ampersand: 0x26 },
    ...{ apostrophe: 0x27, parenleft: 0x28, parenright: 0x29, asterisk: 0x2a, plus: 0x2b, comma: 0x2c, minus: 0x2d },
    ...{ period: 0x2e, slash: 0x2f, colon: 0x3a, semicolon: 0x3b, less: 0x3c, equal: 0x3d, greater: 0x3e },
    ...{ question: 0x3f, at: 0x40, bracketleft: 0x5b, backslash: 0x5c, bracketright: 0x5d, asciicircum: 0x5e },
    ...{ underscore: 0x5f, grave: 0x60, braceleft: 0x7b, bar: 0x7c, braceright: 0x7d, asciitilde: 0x7e },
    ...{ xf86audiolowervolume: 0x1008ff11, xf86audiomute: 0x1008ff12, xf86audioraisevolume: 0x1008ff13 },
    ...{ xf86audioplay: 0x1008ff14, xf86back: 0x1008ff26, xf86forward: 0x1008ff27, xf86reload: 0x1008ff73 },
    ...Object.fromEntries(Array.from({ length: 35 }, (_, n) => [`f${n + 1}`, 0xffbe + n])),
    ...Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`kp_${n}`, 0xffb0 + n])),
  }),
);

const UNICODE = 0x01000000;
const TAB = 0xff09;
const RETURN = 0xff0d;
const SHIFT = 0xffe1;
export const MAX_CHORDS = 64;
export const MAX_CHORD_KEYS = 8;

/** The keysym of a character; null for control characters other than newline and tab. */
export function keysymOf(character: string): number | null {
  const point = character.codePointAt(0) ?? 0;
  if (character === "\n" || character === "\r") return RETURN;
  if (character === "\t") return TAB;
  if (point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0xd800 && point < 0xe000)) return null;
  return point < 0x100 ? point : UNICODE + point;
}

/** Keys that are pressed together, in the order of pressing. */
export type Chord = readonly number[];

/** Types a capital with shift, as a person does: otherwise Xvnc would enable Caps Lock and leave it on. */
function chordOf(character: string): Chord | null {
  const key = keysymOf(character);
  if (key === null) return null;
  return character.toLowerCase() === character ? [key] : [SHIFT, key];
}

/** The chords that type a text, character by character. A line break is one key in any notation. */
export function chordsOfText(text: string): { chords: Chord[] } | { bad: string } {
  const chords: Chord[] = [];
  for (const character of text.replaceAll("\r\n", "\n")) {
    const chord = chordOf(character);
    if (chord === null) {
      return { bad: `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}` };
    }
    chords.push(chord);
  }
  return { chords };
}

/** Parses `ctrl+shift+t`, or several chords separated by spaces. */
export function chordsOf(text: string): { chords: Chord[] } | { bad: string } {
  const words = text === " " ? ["space"] : text.split(/\s+/).filter((word) => word !== "");
  if (words.length === 0 || words.length > MAX_CHORDS) return { bad: text };
  const chords: Chord[] = [];
  for (const word of words) {
    const chord: number[] = [];
    for (const name of namesIn(word)) {
      const keys = keysNamed(name);
      if (keys === null) return { bad: name };
      chord.push(...keys.filter((key) => !chord.includes(key)));
    }
    if (chord.length > MAX_CHORD_KEYS) return { bad: word };
    chords.push(chord);
  }
  return { chords };
}

/** The plus key itself may be the last name. */
function namesIn(word: string): string[] {
  if (word === "+") return ["+"];
  return word.endsWith("++") ? [...word.slice(0, -2).split("+"), "+"] : word.split("+");
}

function keysNamed(name: string): Chord | null {
  const [first = "", second] = name;
  if (first !== "" && second === undefined) return chordOf(first);
  const key = NAMED.get(name.toLowerCase());
  return key === undefined ? null : [key];
}
