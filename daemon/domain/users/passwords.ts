/**
 * Owns passwords: how they are kept, and how many are worked on at once. Argon2id takes much memory and an eighth of a second, so few
 * are worked on at a time and the others wait, few of each network: who asks beyond that is told to come again. Who is known, by a
 * session or a browser that was used before, waits in a line of their own, which strangers cannot fill; the two take turns.
 */
import { availableParallelism } from "node:os";
import { Places } from "../../core/places.ts";
import { ServiceError } from "../../core/service-error.ts";

/** Few, and of the host's processors half are left to everything else. */
export const AT_ONCE = Math.max(1, Math.min(2, Math.floor(availableParallelism() / 2)));
const MOST_WAITING = { known: 64, strangers: 64 } as const;
const MOST_OF_ONE = 3;
const OPTIONS = { algorithm: "argon2id", memoryCost: 65_536, timeCost: 2 } as const;

/** Who wants to have a password worked on: a network, or a person who is known. */
export interface Asker {
  line: keyof typeof MOST_WAITING;
  name: string;
}

export const stranger = (network: string): Asker => ({ line: "strangers", name: network });

export class Passwords {
  #working = 0;
  /** The lines take turns. */
  #isTurnOfKnown = true;
  readonly #waiting = { known: [] as (() => void)[], strangers: [] as (() => void)[] };
  /** Of each, those that work or wait. */
  readonly #places = new Places(MOST_OF_ONE, tooMany);
  /** What the password of nobody is compared with, so that a name that nobody has costs the same. */
  #ofNobody: string | null = null;

  /** Throws rate_limited. */
  async hash(password: string, asker: Asker): Promise<string> {
    return await this.#inTurn(asker, () => Bun.password.hash(password, OPTIONS));
  }

  /**
   * Takes as long with null, whose password is never right. `begin` is called once there is a place for it, and may refuse. Throws
   * rate_limited, and as `begin` does.
   */
  async isRight(password: string, hash: string | null, asker: Asker, begin: () => void): Promise<boolean> {
    const compare = async () => {
      this.#ofNobody ??= await Bun.password.hash(crypto.randomUUID(), OPTIONS);
      return await Bun.password.verify(password, hash ?? this.#ofNobody);
    };
    return (await this.#inTurn(asker, compare, begin)) && hash !== null;
  }

  async #inTurn<T>({ line, name }: Asker, work: () => Promise<T>, begin = () => {}): Promise<T> {
    const waiting = this.#waiting[line];
    if (waiting.length >= MOST_WAITING[line]) throw tooMany();
    const giveBack = this.#places.take(`${line} ${name}`);
    try {
      begin();
      if (this.#working >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
      else this.#working++;
      try {
        return await work();
      } finally {
        const [first, second] = this.#isTurnOfKnown
          ? (["known", "strangers"] as const)
          : (["strangers", "known"] as const);
        const next = this.#waiting[first].shift() ?? this.#waiting[second].shift();
        this.#isTurnOfKnown = !this.#isTurnOfKnown;
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
