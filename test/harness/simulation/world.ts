/**
 * Virtual time, the queue of events and the processes of a simulation. One event runs at a time, with all promises that settle by it, so that
 * the order of everything follows from the seed. While an event of a process runs, the clocks and timers of this thread are that process's.
 */
import { drainMicrotasks } from "bun:jsc";
import { Chance } from "../random.ts";

/** Wall-clock time of virtual time 0. */
const EPOCH_MS = Date.UTC(2026, 0, 1);
/** Duration of a turn of a simulated event loop. */
const TURN_MS = 0.02;

/** A daemon: it can be paused and killed. Its timers and its memory end with it. */
export class Process {
  readonly name: string;
  isAlive = true;
  isPaused = false;
  /** Error of its wall clock. */
  aheadMs = 0;
  /** Events that became due while it was paused. */
  readonly held: Event[] = [];
  readonly #onDeath: (() => void)[] = [];
  readonly #own = new Map<unknown, unknown>();

  constructor(name: string) {
    this.name = name;
  }

  onDeath(step: () => void): void {
    this.#onDeath.push(step);
  }

  kill(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    this.held.length = 0;
    for (const step of this.#onDeath) step();
  }

  /** State that is global in a daemon, and one for each process here. */
  own<T>(name: unknown, make: () => T): T {
    if (!this.#own.has(name)) this.#own.set(name, make());
    return this.#own.get(name) as T;
  }
}

interface Event {
  at: number;
  /** Events of one moment run in the order in which they were scheduled. */
  order: number;
  process: Process | null;
  run(): void;
}

/** The world of the event that runs. */
let running: World | null = null;

export const currentWorld = (): World | null => running;

export class World {
  readonly chance: Chance;
  now = 0;
  current: Process | null = null;
  events = 0;
  readonly #queue: Event[] = [];
  #order = 0;
  readonly #names = new Map<string, string>();
  readonly #directory: string;
  #hash = 0xcbf29ce484222325n;
  /** Lines of the trace; null: only their hash is kept. */
  readonly lines: string[] | null;

  /** `directory` is that of the disks: no trace names it. */
  constructor(seed: number, directory: string, keepsTrace: boolean) {
    this.#directory = directory;
    this.chance = new Chance(seed);
    this.lines = keepsTrace ? [] : null;
  }

  get wallMs(): number {
    return EPOCH_MS + Math.floor(this.now) + (this.current?.aheadMs ?? 0);
  }

  /** Runs `work` after `ms`, as an event of a process; null: of the world around them. Returns a function that cancels it. */
  after(ms: number, process: Process | null, work: () => void): () => void {
    const event = { at: this.now + Math.max(ms, 0), order: this.#order++, process, run: work };
    this.#push(event);
    return () => {
      event.run = () => {};
    };
  }

  turn(process: Process | null, work: () => void): () => void {
    return this.after(TURN_MS, process, work);
  }

  resume(process: Process): void {
    process.isPaused = false;
    for (const { run } of process.held.splice(0)) this.after(0, process, run);
  }

  runUntil(at: number): void {
    for (let next = this.#queue[0]; next && next.at <= at; next = this.#queue[0]) {
      this.#pop();
      this.now = next.at;
      this.#run(next);
    }
    this.now = at;
  }

  #run(event: Event): void {
    const { process } = event;
    if (process && !process.isAlive) return;
    if (process?.isPaused) {
      process.held.push(event);
      return;
    }
    this.events++;
    running = this;
    this.current = process;
    try {
      event.run();
      drainMicrotasks();
    } finally {
      this.current = null;
      running = null;
    }
  }

  /** Notes a line of the trace. Random identifiers are numbered as they appear: some are of the system's randomness. */
  trace(line: string): void {
    const named = line.replaceAll(this.#directory, "").replace(IDENTIFIERS, (id) => {
      const name = this.#names.get(id) ?? `#${this.#names.size}`;
      this.#names.set(id, name);
      return name;
    });
    const text = `${this.now.toFixed(2)} ${this.current?.name ?? "-"} ${named}`;
    this.#hash = BigInt.asUintN(64, (this.#hash ^ BigInt(Bun.hash(text))) * 0x100000001b3n);
    this.lines?.push(text);
  }

  get hash(): string {
    return this.#hash.toString(16).padStart(16, "0");
  }

  #push(event: Event): void {
    const queue = this.#queue;
    let at = queue.push(event) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isBefore(event, queue[above] as Event)) break;
      queue[at] = queue[above] as Event;
      at = above;
    }
    queue[at] = event;
  }

  #pop(): void {
    const queue = this.#queue;
    const last = queue.pop() as Event;
    if (queue.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= queue.length) break;
      if (below + 1 < queue.length && isBefore(queue[below + 1] as Event, queue[below] as Event)) below++;
      if (!isBefore(queue[below] as Event, last)) break;
      queue[at] = queue[below] as Event;
      at = below;
    }
    queue[at] = last;
  }
}

const isBefore = (a: Event, b: Event) => a.at < b.at || (a.at === b.at && a.order < b.order);

const IDENTIFIERS = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9A-HJKMNP-TV-Z]{26}/g;
