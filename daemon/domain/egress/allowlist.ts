/**
 * Decides whether a sandbox may connect to a name or an address at a port. Pure: addresses are resolved elsewhere.
 *
 *   address   public: listed, or the list has "*"; private or the host's own: listed by a range, and permitted by the configuration
 *   name      listed, or the list has "*"; then each address that it resolves to: public, or as above
 */
import { type Address, contains, kindOf, type Range } from "./addresses.ts";
import { type Entry, readEntry } from "./entries.ts";

/** Settings shared by all sandboxes of this host. */
export interface Ground {
  /** Ranges of private addresses that a list may name. */
  privateRanges: readonly Range[];
  /** Whether an address is this host's own. */
  isHosts(address: Address): boolean;
}

export type Verdict = "allowed" | "not_listed" | "blocked_address";

export class Policy {
  readonly #entries: readonly (Entry & { text: string })[];
  readonly #ground: Ground;

  constructor(allowlist: readonly string[], ground: Ground) {
    // An entry that was valid when it was written and no longer is allows nothing.
    this.#entries = allowlist.flatMap((text) => {
      const entry = readEntry(text);
      return "refused" in entry ? [] : [{ ...entry, text }];
    });
    this.#ground = ground;
  }

  /** Whether the list allows nothing, not even a name. */
  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  /** Ports to which entries are limited. */
  get ports(): ReadonlySet<number> {
    return new Set(this.#entries.flatMap(({ port }) => port ?? []));
  }

  /** Ranges at the bounds of which a verdict on an address may change: entries, and private ranges that entries may name. */
  get ranges(): readonly Range[] {
    return [...this.#entries.filter((entry) => entry.kind === "range"), ...this.#ground.privateRanges];
  }

  /** Whether a name may be requested; a null port is any. */
  allowsName(name: string, port: number | null): boolean {
    return this.entryOfName(name, port) !== null;
  }

  /** The first entry that matches a name; a null port is any port. */
  entryOfName(name: string, port: number | null): string | null {
    const found = this.#entries.find(
      (entry) =>
        entry.kind === "any" ||
        (entry.kind === "name" &&
          (entry.wildcard ? name.endsWith(`.${entry.name}`) : name === entry.name) &&
          (port === null || entry.port === null || entry.port === port)),
    );
    return found?.text ?? null;
  }

  /** The first entry that matches an address, whether or not the address can be reached. */
  entryOfAddress(address: Address, port: number): string | null {
    return this.#rangeOf(address, port) ?? (this.#allowsAny ? "*" : null);
  }

  /** The verdict on an address, independent of names. */
  ofAddress(address: Address, port: number): Verdict {
    if (!this.#isBlocked(address, port)) {
      return this.entryOfAddress(address, port) === null ? "not_listed" : "allowed";
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
    return this.#rangeOf(address, port) !== null;
  }

  #rangeOf(address: Address, port: number): string | null {
    const found = this.#entries.find(
      (entry) => entry.kind === "range" && contains(entry, address) && (entry.port === null || entry.port === port),
    );
    return found?.text ?? null;
  }
}
