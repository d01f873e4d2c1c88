/** Service threads of one kind: started one after another and replaced when they end. Tasks go to the least loaded thread. */
import { monotonicMs, startTimer, stopTimer } from "../clock.ts";
import { Published } from "../concurrency/published.ts";
import type { Log } from "../log.ts";
import { ServiceThread, type ThreadOptions } from "./thread.ts";

const MAX_ENDS = 3;
const ENDS_WITHIN_MS = 60_000;

export interface ThreadPoolOptions extends ThreadOptions {
  count: number;
  /**
   * Minimum time between two replacements, then without a limit on their number; if absent, threads are not replaced after the third end
   * within a minute.
   */
  restMs?: number;
  log: Log;
}

export class ThreadPool {
  readonly #options: ThreadPoolOptions | null;
  readonly #ready = new Published<ReadonlySet<ServiceThread>>(new Set());
  #loading: ServiceThread | null = null;
  #ends: number[] = [];
  #replacedAt = Number.NEGATIVE_INFINITY;
  #rest: Timer | null = null;
  /** Whether the pool starts no more threads. */
  #isOver = false;

  /** Without options the pool has no threads. */
  constructor(options: ThreadPoolOptions | null) {
    this.#options = options;
    this.#startNext();
  }

  /** Whether threads have ended three times within a minute. */
  get isDegraded(): boolean {
    if (this.#options?.restMs !== undefined) this.#dropOldEnds();
    return this.#ends.length >= MAX_ENDS;
  }

  /** Threads that take tasks. */
  get threads(): number {
    return this.#ready.value.size;
  }

  /** Resolves once all threads are ready, or no further thread is being started. */
  async started(): Promise<void> {
    while (this.#loading) {
      await this.#loading.loaded;
    }
  }

  /** The least loaded thread; null if none is ready. */
  get thread(): ServiceThread | null {
    let least: ServiceThread | null = null;
    for (const thread of this.#ready.value) if (!least || thread.load < least.load) least = thread;
    return least;
  }

  /** Like `thread`, but waits for a thread that is being started. */
  async threadWithin(ms: number, signal?: AbortSignal): Promise<ServiceThread | null> {
    await this.#ready.until(({ size }) => size > 0 || this.#isOver, ms, signal).catch(() => {});
    return this.thread;
  }

  async close(): Promise<void> {
    const threads = [...this.#ready.value, ...(this.#loading ? [this.#loading] : [])];
    this.#end();
    this.#ready.set(new Set());
    await Promise.all(threads.map((thread) => thread.close()));
  }

  /** Sequential: databases that several threads open simultaneously may seem empty to some (oven-sh/bun#34446). */
  #startNext(): void {
    const options = this.#options;
    if (!options || this.#loading || this.#isOver || this.threads >= options.count) return;
    const thread: ServiceThread = new ServiceThread(options, (reason) => this.#ended(thread, reason));
    this.#loading = thread;
    void thread.loaded.then((isLoaded) => {
      if (!isLoaded || this.#loading !== thread) return;
      this.#loading = null;
      if (!this.#isOver) this.#ready.set(new Set(this.#ready.value).add(thread));
      this.#startNext();
    });
  }

  #ended(thread: ServiceThread, reason: string): void {
    if (this.#loading === thread) this.#loading = null;
    const { restMs, log, name } = this.#options ?? {};
    this.#dropOldEnds();
    this.#ends.push(monotonicMs());
    const restarts = restMs !== undefined || this.#ends.length < MAX_ENDS;
    if (!this.#isOver) log?.warn(`${name} has ended`, { reason, restarts });
    if (!restarts) this.#end();
    const others = new Set(this.#ready.value);
    others.delete(thread);
    this.#ready.set(others);
    if (!this.#isOver) this.#replace(restMs ?? 0);
  }

  #replace(restMs: number): void {
    const replace = () => {
      this.#rest = null;
      this.#replacedAt = monotonicMs();
      this.#startNext();
    };
    const leftMs = this.#replacedAt + restMs - monotonicMs();
    if (leftMs > 0) this.#rest ??= startTimer(replace, leftMs).unref();
    else replace();
  }

  #end(): void {
    this.#isOver = true;
    stopTimer(this.#rest);
  }

  #dropOldEnds(): void {
    const from = monotonicMs() - ENDS_WITHIN_MS;
    this.#ends = this.#ends.filter((at) => at >= from);
  }
}
