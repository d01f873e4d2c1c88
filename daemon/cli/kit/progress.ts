/**
 * The progress line: the current wait and its duration. Shown on a terminal only, after a second, and removed when the wait ends. There is
 * one at a time: a nested wait has no line.
 */
import { printable } from "./output.ts";

const QUIET_MS = 1000;
const EVERY_MS = 200;
const CLEAR_LINE = "\r\u001b[K";

export interface Progress {
  /** The current step. */
  say(text: string): void;
  /** Clears the progress line for other output. It reappears a second later, if `mayReturn`. */
  giveWay(mayReturn?: boolean): void;
}

const UNSEEN: Progress = { say: () => {}, giveWay: () => {} };

let isSilent = false;
let isShown = false;

/** From now on no line is shown: a program reads the output, or --quiet was given. */
export function silence(): void {
  isSilent = true;
}

/** Runs `work` while a line such as `creating sandbox a … 3 s` is shown on standard error. */
export async function withProgress<T>(text: string, work: (progress: Progress) => Promise<T>): Promise<T> {
  const { stderr } = process;
  if (isSilent || isShown || !stderr.isTTY) return await work(UNSEEN);
  let now = text;
  let drawn = false;
  let mayDraw = true;
  const start = performance.now();
  let quietSince = start;
  const draw = () => {
    if (!mayDraw || performance.now() - quietSince < QUIET_MS) return;
    const end = ` … ${Math.floor((performance.now() - start) / 1000)} s`;
    // A line that wraps could not be cleared.
    stderr.write(CLEAR_LINE + printable(now).slice(0, (stderr.columns || 80) - end.length - 1) + end);
    drawn = true;
  };
  const clear = () => {
    if (drawn) stderr.write(CLEAR_LINE);
    drawn = false;
  };
  isShown = true;
  const timer = setInterval(draw, EVERY_MS);
  try {
    return await work({
      say: (next) => {
        now = next;
      },
      giveWay: (mayReturn = true) => {
        clear();
        mayDraw = mayReturn;
        quietSince = performance.now();
      },
    });
  } finally {
    clearInterval(timer);
    clear();
    isShown = false;
  }
}

/** Runs work that uses the terminal exclusively. */
export async function withoutProgress<T>(work: () => Promise<T>): Promise<T> {
  const before = isSilent;
  isSilent = true;
  try {
    return await work();
  } finally {
    isSilent = before;
  }
}
