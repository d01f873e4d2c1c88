/**
 * Service threads of one kind: starts them one after another and replaces those that have ended. Tasks go to the least loaded.
 */
import { monotonicMs } from "../clock.ts";
import type { Log } from "../log.ts";
import { within } from "../published.ts";
import { ServiceThread, type ThreadOptions } from "./thread.ts";

const MOST_ENDS = 3;
const ENDS_WITHIN_MS = 60_000;

export interface ThreadPoolOptions extends ThreadOptions {
  count: number;
  log: Log;
}

export class ThreadPool {
  readonly #options: ThreadPoolOptions | null;
  readonly #ready = new Set<ServiceThread>();
  #loading: ServiceThread | null = null;
  readonly #ends: number[] = [];
  #isClosed = false;

  /** Without options it has no threads. */
  constructor(options: ThreadPoolOptions | null) {
    this.#options = options;
    this.#startNext();
  }

  /** Whether threads have ended so often that no more are started. */
  get isDegraded(): boolean {
    return this.#ends.length >= MOST_ENDS;
  }

  /** Threads that take tasks. */
  get threads(): number {
    return this.#ready.size;
  }

  /** Resolves once all threads are ready, or no more are started. */
  async started(): Promise<void> {
    while (this.#loading) {
      await this.#loading.loaded;
    }
  }

  /** The least loaded thread; null if none is ready. */
  get thread(): ServiceThread | null {
    let least: ServiceThread | null = null;
    for (const thread of this.#ready) if (!least || thread.load < least.load) least = thread;
    return least;
  }

  /** As `thread`; a thread that is loading is waited for. */
  async threadWithin(ms: number): Promise<ServiceThread | null> {
    if (this.#ready.size === 0)
      await within(this.#loading?.loaded ?? Promise.resolve(false), ms, "a thread").catch(() => {});
    return this.thread;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const threads = [...this.#ready, ...(this.#loading ? [this.#loading] : [])];
    this.#ready.clear();
    await Promise.all(threads.map((thread) => thread.close()));
  }

  /** One after another: databases that several threads open simultaneously may seem empty to some (oven-sh/bun#34446). */
  #startNext(): void {
    const options = this.#options;
    if (!options || this.#loading || this.#isClosed || this.isDegraded || this.#ready.size >= options.count) return;
    const thread: ServiceThread = new ServiceThread(options, (reason) => this.#ended(thread, reason));
    this.#loading = thread;
    void thread.loaded.then((isLoaded) => {
      this.#loading = null;
      if (isLoaded && !this.#isClosed) this.#ready.add(thread);
      this.#startNext();
    });
  }

  #ended(thread: ServiceThread, reason: string): void {
    this.#ready.delete(thread);
    if (this.#isClosed || !this.#options) return;
    const now = monotonicMs();
    while (this.#ends[0] !== undefined && now - this.#ends[0] > ENDS_WITHIN_MS) this.#ends.shift();
    this.#ends.push(now);
    const { log, name } = this.#options;
    log.warn(`a ${name} thread has ended`, { reason, restarts: !this.isDegraded });
    this.#startNext();
  }
}
