/**
 * Owns passwords: how they are kept, and how many are worked on at once. Argon2id takes much memory and an eighth of a second, so few
 * are worked on at a time and the others wait, few of each network: who asks beyond that is told to come again.
 */
import { Places } from "../../core/places.ts";
import { ServiceError } from "../../core/service-error.ts";

const AT_ONCE = 2;
const MOST_WAITING = 64;
const MOST_OF_NETWORK = 3;
const OPTIONS = { algorithm: "argon2id", memoryCost: 65_536, timeCost: 2 } as const;

export class Passwords {
  #working = 0;
  readonly #waiting: (() => void)[] = [];
  /** Of each network, those that work or wait. */
  readonly #places = new Places(MOST_OF_NETWORK, tooMany);
  /** What the password of nobody is compared with, so that a name that nobody has costs the same. */
  #ofNobody: string | null = null;

  /** Throws rate_limited. */
  async hash(password: string, network: string): Promise<string> {
    return await this.#inTurn(network, () => Bun.password.hash(password, OPTIONS));
  }

  /** Takes as long with null, whose password is never right. Throws rate_limited. */
  async isRight(password: string, hash: string | null, network: string): Promise<boolean> {
    const right = await this.#inTurn(network, async () => {
      this.#ofNobody ??= await Bun.password.hash(crypto.randomUUID(), OPTIONS);
      return await Bun.password.verify(password, hash ?? this.#ofNobody);
    });
    return right && hash !== null;
  }

  async #inTurn<T>(network: string, work: () => Promise<T>): Promise<T> {
    if (this.#waiting.length >= MOST_WAITING) throw tooMany();
    const giveBack = this.#places.take(network);
    try {
      if (this.#working >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      else this.#working++;
      try {
        return await work();
      } finally {
        const next = this.#waiting.shift();
        if (next) next();
        else this.#working--;
      }
    } finally {
      giveBack();
    }
  }
}

function tooMany(): ServiceError {
  return new ServiceError("rate_limited", { detail: "Too many are signing in at this moment.", retryAfterSeconds: 2 });
}
