/**
 * Decides whether a sandbox may connect to a name or an address at a port. Pure: addresses are resolved elsewhere.
 *
 *   address   public, and the list has it or has "*"; private or the host's own: named by a range, and the configuration lets it
 *   name      the list has it or has "*"; then each address it resolves to: public, or as above
 */
import { type Address, contains, kindOf, type Range } from "./addresses.ts";
import { type Entry, readEntry } from "./entries.ts";

/** What is the same for all sandboxes of this host. */
export interface Ground {
  /** Ranges of private addresses that a list may name. */
  privateRanges: readonly Range[];
  /** Whether an address is this host's own. */
  isHosts(address: Address): boolean;
}

export type Verdict = "allowed" | "not_listed" | "blocked_address";

export class Policy {
  readonly #entries: readonly Entry[];
  readonly #ground: Ground;

  constructor(allowlist: readonly string[], ground: Ground) {
    // What was accepted when it was written and no longer is allows nothing.
    this.#entries = allowlist.map(readEntry).flatMap((entry) => ("refused" in entry ? [] : [entry]));
    this.#ground = ground;
  }

  /** Nothing at all is allowed, names included. */
  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  /** Whether a name may be asked for; a null port is any. */
  allowsName(name: string, port: number | null): boolean {
    return this.#entries.some(
      (entry) =>
        entry.kind === "any" ||
        (entry.kind === "name" &&
          (entry.wildcard ? name.endsWith(`.${entry.name}`) : name === entry.name) &&
          (port === null || entry.port === null || entry.port === port)),
    );
  }

  /** The verdict on an address, whatever name it was found by. */
  ofAddress(address: Address, port: number): Verdict {
    if (!this.#isBlocked(address, port)) {
      return this.#named(address, port) || this.#allowsAny ? "allowed" : "not_listed";
    }
    return "blocked_address";
  }

  /** The verdict on an address that an allowed name resolves to. */
  ofResolved(address: Address, port: number): Verdict {
    return this.#isBlocked(address, port) ? "blocked_address" : "allowed";
  }

  get #allowsAny(): boolean {
    return this.#entries.some(({ kind }) => kind === "any");
  }

  #isBlocked(address: Address, port: number): boolean {
    const kind = kindOf(address);
    if (kind === "never") return true;
    if (kind === "public" && !this.#ground.isHosts(address)) return false;
    return !(this.#named(address, port) && this.#ground.privateRanges.some((range) => contains(range, address)));
  }

  #named(address: Address, port: number): boolean {
    return this.#entries.some(
      (entry) => entry.kind === "range" && contains(entry, address) && (entry.port === null || entry.port === port),
    );
  }
}
