/** Mailbox of a task: runs its entries one after another, in order. */
export class Mailbox {
  #tail: Promise<unknown> = Promise.resolve();
  #inside = 0;

  /** Whether something is under way. */
  get busy(): boolean {
    return this.#inside > 0;
  }

  /** Runs `work` after all works queued before it; settles with its result. */
  put<T>(work: () => Promise<T>): Promise<T> {
    this.#inside++;
    const done = this.#tail.then(work, work).finally(() => {
      this.#inside--;
    });
    this.#tail = done.catch(() => {});
    return done;
  }
}
