/** Statistics of event loop time, for metrics and `roomd top`. */

import { monotonicMs } from "../clock.ts";
import { Histogram } from "../histogram.ts";
import type { LoopTime, Piece } from "./scheduler.ts";

const PIECE_BOUNDS_SECONDS = [0.0001, 0.0005, 0.002, 0.005, 0.02, 0.1, 1];
const WAIT_BOUNDS_SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 2];
/** No piece may take longer. */
const LONG_MS = 20;
/** The longest piece is reported for one to two windows. */
const WINDOW_MS = 30_000;
/** Kinds of work that is not an operation; all operations are of the kind `call`. */
export const LOOP_KINDS = [
  "call",
  "request",
  "mcp",
  "live.open",
  "bell.wake",
  "guest.frames",
  "barrier.break",
  "host.processes",
  "room.rows",
  "room.drive",
  "room.screen",
  "audit",
  "stream",
  "terminal",
  "message.spread",
  "reconcile",
  "cluster.settle",
  "retention",
  "body",
  "file",
  "thread",
  "timer",
  "db.read",
  "db.write",
  "db.commit",
];

export class LoopFigures {
  readonly #time: LoopTime;
  readonly #now: () => number;
  /** By kind of work. */
  readonly pieces = new Map(LOOP_KINDS.map((kind) => [kind, new Histogram(PIECE_BOUNDS_SECONDS)]));
  /** Pieces of over 20 ms, by operation or kind of work. */
  readonly longTurns = new Map<string, number>(LOOP_KINDS.map((kind) => [kind, 0]));
  readonly waits = new Histogram(WAIT_BOUNDS_SECONDS);
  readonly #calls = this.pieces.get("call") ?? new Histogram(PIECE_BOUNDS_SECONDS);
  #window: { from: number; longest: Piece | null; before: Piece | null };

  constructor(time: LoopTime, now = monotonicMs) {
    this.#time = time;
    this.#now = now;
    this.#window = { from: now(), longest: null, before: null };
    time.observe((piece) => this.#note(piece));
  }

  /** Milliseconds per account since the start, largest first: `org:ID`, `net` or `host`. */
  get used(): [account: string, ms: number][] {
    return [...this.#time.used].toSorted(([, a], [, b]) => b - a);
  }

  /** Number of queued pieces of organizations, networks and the service. */
  get waiting(): Record<"org" | "net" | "host", number> {
    return this.#time.waiting;
  }

  /** The longest piece of the last 30 to 60 seconds. */
  get longest(): Piece | null {
    this.#turnWindow();
    const { longest, before } = this.#window;
    return (before?.ms ?? 0) > (longest?.ms ?? 0) ? before : longest;
  }

  #note(piece: Piece): void {
    (this.pieces.get(piece.label) ?? this.#calls).note(piece.ms / 1000);
    if (piece.waitedMs > 0) this.waits.note(piece.waitedMs / 1000);
    if (piece.cpuMs !== null && piece.cpuMs > LONG_MS)
      this.longTurns.set(piece.label, (this.longTurns.get(piece.label) ?? 0) + 1);
    if (piece.ms <= (this.#window.longest?.ms ?? 0)) return;
    this.#turnWindow();
    this.#window.longest = piece;
  }

  #turnWindow(): void {
    const age = this.#now() - this.#window.from;
    if (age < WINDOW_MS) return;
    const before = age < 2 * WINDOW_MS ? this.#window.longest : null;
    this.#window = { from: this.#now(), longest: null, before };
  }
}
