/**
 * Thread that watches the event loop: after 100 ms in one piece, and each second from then on, it logs the piece, and the position of the
 * loop's thread in the kernel. It writes the log directly, since the loop is blocked.
 */
import { readFileSync } from "node:fs";
import { agesOfThread, monotonicMs, startTimer } from "../clock.ts";
import { makeLog } from "../log.ts";
import { Board } from "./board.ts";
import type { ToWatch } from "./watch.ts";

declare const self: Worker;

const LOOK_MS = 10;
/** While no piece runs. */
const IDLE_LOOK_MS = 50;
const STANDS_MS = 100;
const AGAIN_MS = 1_000;
/** A longer delay of the watchdog itself means that its process or host was suspended. */
const LATE_MS = 50;
/** The loop's thread is the main thread of the process. */
const TASK = `/proc/self/task/${process.pid}`;
/** Blocking system calls: `asm/unistd.h` of x86-64, and the generic table of arm64. */
const SYSCALLS: Record<string, Record<number, string>> = {
  x64: {
    0: "read",
    1: "write",
    17: "pread64",
    18: "pwrite64",
    61: "wait4",
    74: "fsync",
    75: "fdatasync",
    202: "futex",
    230: "clock_nanosleep",
  },
  arm64: {
    63: "read",
    64: "write",
    67: "pread64",
    68: "pwrite64",
    260: "wait4",
    82: "fsync",
    83: "fdatasync",
    98: "futex",
    115: "clock_nanosleep",
  },
};

const names: string[] = [];

self.onmessage = ({ data }: MessageEvent<ToWatch>) => {
  if ("name" in data) names[data.number] = data.name;
  else watch(new Board(data.memory), makeLog(data.level));
};

function watch(board: Board, log: ReturnType<typeof makeLog>): void {
  const ageOf = agesOfThread();
  let nextAt = monotonicMs();
  let lastReport: { since: number; at: number } | null = null;
  const look = () => {
    const at = monotonicMs();
    const isLate = at - nextAt > LATE_MS;
    const { beat, since, label, owner } = board.read();
    const pauseMs = since > 0 ? LOOK_MS : IDLE_LOOK_MS;
    nextAt = at + pauseMs;
    startTimer(look, pauseMs);
    // Without a running piece, the time since the last beat reveals a block.
    const from = since > 0 ? since : beat;
    const ms = ageOf(from);
    if (isLate || ms < STANDS_MS || beat > from + STANDS_MS) return;
    if (lastReport?.since === from && at - lastReport.at < AGAIN_MS) return;
    lastReport = { since: from, at };
    const piece =
      since > 0 ? { label: names[label] ?? "unknown", owner: names[owner] ?? "unknown" } : { label: "unnamed" };
    log.warn("the event loop is blocked", { ...piece, ms: Math.round(ms), ...placeOf() });
  };
  look();
}

/** State of the loop's thread (R running, D in disk wait, S sleeping) and its current system call. */
function placeOf(): Record<string, string> {
  const state = / ([RSDTtZ]) /.exec(read("stat").split(")").pop() ?? "")?.[1] ?? "unknown";
  if (state === "R") return { state };
  const [number = ""] = read("syscall").split(" ");
  const syscall = SYSCALLS[process.arch]?.[Number(number)] ?? number.trim();
  return { state, syscall, waits_in: read("wchan") };
}

function read(name: string): string {
  try {
    return readFileSync(`${TASK}/${name}`, "utf8");
  } catch {
    return "";
  }
}
