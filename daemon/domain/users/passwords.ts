/**
 * Owns passwords: how they are kept, and how many are worked on at once. Argon2id takes much memory and an eighth of a second, so who
 * asks beyond that is told to come again.
 */
import { ServiceError } from "../../core/service-error.ts";
import COMMON from "./common-passwords.txt" with { type: "text" };

const AT_ONCE = 2;
const WAITING = 8;
const OPTIONS = { algorithm: "argon2id", memoryCost: 65_536, timeCost: 2 } as const;

const common = new Set(COMMON.split("\n"));

export class Passwords {
  #working = 0;
  readonly #waiting: (() => void)[] = [];
  /** What the password of nobody is compared with, so that a name that nobody has costs the same. */
  #ofNobody: Promise<string> | null = null;

  /** Throws validation_failed for one that everybody tries, and rate_limited. */
  async hash(password: string): Promise<string> {
    if (common.has(password.toLowerCase())) {
      throw new ServiceError("validation_failed", {
        detail: "This password is one of those that are tried first. Choose another.",
        errors: [{ field: "password", code: "too_common", message: "is one of those that are tried first" }],
      });
    }
    return await this.#inTurn(() => Bun.password.hash(password, OPTIONS));
  }

  /** Takes as long with null, whose password is never right. Throws rate_limited. */
  async isRight(password: string, hash: string | null): Promise<boolean> {
    const right = await this.#inTurn(async () => {
      this.#ofNobody ??= Bun.password.hash(crypto.randomUUID(), OPTIONS);
      return await Bun.password.verify(password, hash ?? (await this.#ofNobody));
    });
    return right && hash !== null;
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#working >= AT_ONCE) {
      if (this.#waiting.length >= WAITING) {
        throw new ServiceError("rate_limited", {
          detail: "Too many are signing in at this moment.",
          retryAfterSeconds: 2,
        });
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#working++;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#working--;
    }
  }
}
