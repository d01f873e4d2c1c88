/**
 * Password hashing and its concurrency limit. Argon2id takes much memory and an eighth of a second, so few hashes run at a time and other
 * requests wait, few per network; further requests are rejected with rate_limited. Known users, identified by a session or a known browser,
 * wait in a separate queue, which strangers cannot fill; the two queues alternate.
 */
import { availableParallelism } from "node:os";
import { ConcurrencyLimit } from "../../../core/concurrency/concurrency-limit.ts";
import { ServiceError } from "../../../core/service-error.ts";

/** Few, and half of the host's processors remain for everything else. */
export const AT_ONCE = Math.max(1, Math.min(2, Math.floor(availableParallelism() / 2)));
const MAX_WAITING = { known: 64, strangers: 64 } as const;
const MAX_OF_ONE = 3;
const OPTIONS = { algorithm: "argon2id", memoryCost: 65_536, timeCost: 2 } as const;

/** The party that a password is hashed for: a network, or a known user. */
export interface Asker {
  line: keyof typeof MAX_WAITING;
  name: string;
}

export const stranger = (network: string): Asker => ({ line: "strangers", name: network });

export class Passwords {
  #working = 0;
  /** The lines take turns. */
  #isTurnOfKnown = true;
  readonly #waiting = { known: [] as (() => void)[], strangers: [] as (() => void)[] };
  /** Running and waiting requests per asker. */
  readonly #places = new ConcurrencyLimit(MAX_OF_ONE, tooMany);
  /** Hash to compare with if there is no user, so that an unknown name costs the same. */
  #ofNobody: string | null = null;

  /** Throws rate_limited. */
  async hash(password: string, asker: Asker): Promise<string> {
    return await this.#inTurn(asker, () => Bun.password.hash(password, OPTIONS));
  }

  /**
   * Takes as long with null, for which no password is right. `begin` is called once a slot is free, and may refuse. Throws rate_limited,
   * and as `begin` does.
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
    if (waiting.length >= MAX_WAITING[line]) throw tooMany();
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
  return new ServiceError("rate_limited", { detail: "Too many sign-ins are in progress.", retryAfterSeconds: 2 });
}
