/** Keys of `roomd top` and their effects on the view. */
import type { Sort } from "./top-columns.ts";
import { roomFor, rowsOf, type TopView } from "./top-screen.ts";

const SORT_KEYS: Record<string, Sort> = { c: "cpu", m: "memory", d: "disk", n: "network", a: "agent" };
const CTRL_C = "\x03";
const ESCAPE = "\x1b";
const ENTER = ["\r", "\n"];
const BACKSPACE = ["\x7f", "\b"];
const MAX_FILTER = 128;
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys of a terminal are these
const KEY = /\x1b(?:\[|O)[\d;]*[A-Za-z~]|[\s\S]/g;

/** Scroll keys: by one row, by a page, or to the start or end. */
const MOVES: Record<string, (page: number, rows: number) => number> = {
  "\x1b[A": () => -1,
  "\x1bOA": () => -1,
  k: () => -1,
  "\x1b[B": () => 1,
  "\x1bOB": () => 1,
  j: () => 1,
  "\x1b[5~": (page) => -page,
  "\x1b[6~": (page) => page,
  " ": (page) => page,
  "\x1b[H": (_, rows) => -rows,
  g: (_, rows) => -rows,
  "\x1b[F": (_, rows) => rows,
  G: (_, rows) => rows,
};

/** False if `roomd top` is to end. */
export function pressed(view: TopView, typed: string, size: { rows: number; cols: number }): boolean {
  for (const key of typed.match(KEY) ?? []) {
    if (key === CTRL_C) return false;
    if (view.isTyping) typeFilter(view, key);
    else if (key === "q") return false;
    else pressOne(view, key, size);
  }
  return true;
}

function pressOne(view: TopView, key: string, { rows, cols }: { rows: number; cols: number }): void {
  const sort = SORT_KEYS[key];
  const move = MOVES[key];
  if (sort) Object.assign(view, { sort, scroll: 0 });
  else if (key === "/") Object.assign(view, { isTyping: true, scroll: 0 });
  else if (key === ESCAPE) view.filter = "";
  else if (move) {
    const page = roomFor(view, rows, cols);
    const all = rowsOf(view).length;
    view.scroll = Math.min(Math.max(0, view.scroll + move(page, all)), Math.max(0, all - page));
  }
}

function typeFilter(view: TopView, key: string): void {
  if (ENTER.includes(key)) view.isTyping = false;
  else if (key === ESCAPE) Object.assign(view, { isTyping: false, filter: "" });
  else if (BACKSPACE.includes(key)) view.filter = view.filter.slice(0, -1);
  else if (/^[\w.\-/]$/.test(key)) view.filter = (view.filter + key).slice(0, MAX_FILTER);
}
