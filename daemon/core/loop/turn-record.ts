/**
 * Record of long turns, for tests: `ROOMD_TEST_TURNS=FILE` writes a JSON line for each piece of over 5 ms, and for work without an owner of
 * over 5 ms between two pieces. Inactive otherwise.
 */
import * as jsc from "bun:jsc";
import { monotonicMs, startUnchargedInterval, stopTimer } from "../clock.ts";
import type { LoopTime, Piece } from "./scheduler.ts";

export const TURNS_VARIABLE = "ROOMD_TEST_TURNS";
/** Also samples the stacks of long turns, at the cost of a tenth of the process's time. */
export const STACKS_VARIABLE = "ROOMD_TEST_TURN_STACKS";

/** Shorter turns are not recorded. */
const LONG_MS = 5;
/** Turns with more processor time than this get a stack. */
const STACK_MS = 10;
const BEAT_MS = 5;
const DROP_SAMPLES_MS = 1_000;
const MAX_FRAMES = 8;

/** A line of the record. */
export interface RecordedTurn {
  /** Operation or kind of work; `unnamed` for work without an owner. */
  label: string;
  owner: string;
  ms: number;
  /** The thread's processor time; a lower bound for work without an owner. */
  cpu_ms: number;
  /** Milliseconds since the record began. */
  at_ms: number;
  /** The most frequent stack, if stacks are sampled. */
  stack?: string | undefined;
}

/** `cpu` returns the thread's processor time in milliseconds. The returned function ends the record. */
export function recordTurns(time: LoopTime, cpu: () => number, env: Record<string, string | undefined>): () => void {
  const file = env[TURNS_VARIABLE];
  if (!file) return () => {};
  const writer = Bun.file(file).writer();
  const beganAt = monotonicMs();
  const samples = env[STACKS_VARIABLE] ? startSampling() : null;
  /** End of the last piece, or a later beat between pieces: time that the thread has used since had no owner. */
  let mark = { at: beganAt, cpu: cpu() };
  /** Processor time of the sampling since then. */
  let sampling = 0;

  const note = (turn: Pick<Piece, "label" | "owner" | "ms">, withSampling: number) => {
    const cpuMs = withSampling - sampling;
    if (cpuMs <= LONG_MS && sampling > 0) return;
    const at_ms = Math.round(monotonicMs() - beganAt);
    const stack = cpuMs > STACK_MS ? samples?.mostSeen(turn.ms) : undefined;
    const line: RecordedTurn = { ...turn, ms: round(turn.ms), cpu_ms: round(cpuMs), at_ms, stack };
    writer.write(`${JSON.stringify(line)}\n`);
    writer.flush();
  };
  // The turn delays the next beat: the delay beyond the beat's interval is part of that turn.
  const noteUnnamed = (until: { at: number; cpu: number }) => {
    const cpuMs = until.cpu - mark.cpu - BEAT_MS;
    if (cpuMs > LONG_MS) note({ label: "unnamed", owner: "host", ms: until.at - mark.at }, cpuMs);
  };
  const startAgain = () => {
    mark = { at: monotonicMs(), cpu: cpu() };
    sampling = 0;
  };
  time.measureBy(cpu, { everyMs: 0, aboveMs: 0 });
  time.observe(({ label, owner, ms, cpuMs }) => {
    const end = { at: monotonicMs(), cpu: cpu() };
    noteUnnamed({ at: end.at - ms, cpu: end.cpu - (cpuMs ?? 0) });
    if (ms > LONG_MS) note({ label, owner, ms }, cpuMs ?? 0);
    startAgain();
  });
  const beat = startUnchargedInterval(() => {
    if (time.isInPiece) return;
    noteUnnamed({ at: monotonicMs(), cpu: cpu() });
    startAgain();
  }, BEAT_MS);
  const dropping = startUnchargedInterval(() => {
    const before = cpu();
    samples?.drop();
    sampling += cpu() - before;
  }, DROP_SAMPLES_MS);
  return () => {
    stopTimer(beat);
    stopTimer(dropping);
  };
}

const round = (ms: number) => Math.round(ms * 10) / 10;

interface Trace {
  timestamp: number;
  frames: { name: string; line?: number; sourceURL?: string }[];
}

/** JavaScriptCore's sampling profiler: about one sample per millisecond. */
function startSampling() {
  jsc.startSamplingProfiler();
  // Missing in the types of bun:jsc.
  const { samplingProfilerStackTraces } = jsc as unknown as { samplingProfilerStackTraces(): { traces: Trace[] } };
  const take = () => samplingProfilerStackTraces().traces;
  return {
    drop: () => void take(),
    /** In the last milliseconds. */
    mostSeen: (ms: number): string => {
      const traces = take();
      const from = (traces.at(-1)?.timestamp ?? 0) - ms / 1_000;
      const counts = new Map<string, number>();
      for (const { timestamp, frames } of traces) {
        if (timestamp < from) continue;
        const stack = frames.slice(0, MAX_FRAMES).map(({ name, line }) => `${name || "anonymous"}:${line ?? "native"}`);
        const text = stack.join(" < ");
        counts.set(text, (counts.get(text) ?? 0) + 1);
      }
      return [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? "";
    },
  };
}
