/** Answers of the payment service that were asked for a moment ago: whoever reloads a page uses up none of what it answers to all organizations. */

/** How long an answer is good that may change. */
const KEPT_MS = 1_000;
const MOST_KEPT = 1_000;

interface Answer {
  atMs: number;
  value: Promise<boolean>;
}

export class Asked {
  readonly #now: () => number;
  /** By name; the newest comes last. */
  readonly #answers = new Map<string, Answer>();

  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /** What `ask` says, or said within the last second; true is said for good. Several at once ask once. */
  once(name: string, ask: () => Promise<boolean>): Promise<boolean> {
    const known = this.#answers.get(name);
    if (known && this.#now() - known.atMs < KEPT_MS) return known.value;
    const answer: Answer = { atMs: this.#now(), value: ask() };
    this.#keep(name, answer);
    answer.value.then(
      (isTrue) => {
        if (isTrue) answer.atMs = Number.POSITIVE_INFINITY;
      },
      () => {
        if (this.#answers.get(name) === answer) this.#answers.delete(name);
      },
    );
    return answer.value;
  }

  #keep(name: string, answer: Answer): void {
    this.#answers.delete(name);
    this.#answers.set(name, answer);
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MOST_KEPT && oldest !== undefined) this.#answers.delete(oldest);
  }
}
