/** Start of the watchdog of the event loop: the thread watch-thread.ts detects a block, and logs it while it lasts. */

import { monotonicMs, startTimer, startUnchargedInterval, stopTimer } from "../clock.ts";
import type { Log, LogLevel } from "../log.ts";
import { BOARD_BYTES, Board } from "./board.ts";
import type { LoopTime } from "./scheduler.ts";

const BEAT_MS = 50;
const RESTART_MS = 1_000;
const MAX_RESTARTS = 3;
const RESTARTS_WITHIN_MS = 60_000;
/** Names known to the thread; above this number, all are sent again. */
const MAX_NAMES = 10_000;

/** To the thread. */
export type ToWatch = { memory: SharedArrayBuffer; level: LogLevel } | { name: string; number: number };

export interface LoopWatch {
  stop(): void;
}

export function watchLoop(time: LoopTime, log: Log, level: LogLevel): LoopWatch {
  const memory = new SharedArrayBuffer(BOARD_BYTES);
  const board = new Board(memory);
  const names = new Map<string, number>();
  const restarts: number[] = [];
  let thread: Worker | null = null;
  let restarting: Timer | undefined;
  let isOver = false;

  const tell = (message: ToWatch) => thread?.postMessage(message);
  const numberOf = (name: string): number => {
    const known = names.get(name);
    if (known !== undefined) return known;
    if (names.size >= MAX_NAMES) names.clear();
    const number = names.size;
    names.set(name, number);
    tell({ name, number });
    return number;
  };
  const begin = () => {
    thread = new Worker(new URL("./watch-thread.ts", import.meta.url).href);
    tell({ memory, level });
    for (const [name, number] of names) tell({ name, number });
    thread.onerror = ({ message }) => {
      thread = null;
      const now = monotonicMs();
      while (restarts[0] !== undefined && now - restarts[0] > RESTARTS_WITHIN_MS) restarts.shift();
      if (isOver) return;
      log.warn("the event loop's watch has ended", { error: message, restarts: restarts.length < MAX_RESTARTS });
      if (restarts.push(now) <= MAX_RESTARTS) restarting = startTimer(begin, RESTART_MS);
    };
    thread.unref();
  };

  const beat = () => board.beat(monotonicMs());
  beat();
  const timer = startUnchargedInterval(beat, BEAT_MS);
  timer.unref();
  begin();
  time.show({
    start: (now, account, label) => board.start(now, numberOf(label), numberOf(account)),
    end: () => board.end(),
  });
  return {
    stop: () => {
      isOver = true;
      time.show(null);
      stopTimer(timer);
      stopTimer(restarting);
      thread?.terminate();
    },
  };
}
