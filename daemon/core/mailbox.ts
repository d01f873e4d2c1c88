/** Owns the mailbox of a task: what is put in is done one after another, in order. */
export class Mailbox {
  #tail: Promise<unknown> = Promise.resolve();

  /** Runs `work` after all that was put in before; resolves or rejects as it does. */
  put<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#tail.then(work, work);
    this.#tail = done.catch(() => {});
    return done;
  }
}
