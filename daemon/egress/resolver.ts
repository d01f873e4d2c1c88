/** Owns finding the addresses of names for sandboxes: by a file of the operator's, else by the host's own resolver. */
import { lookup } from "node:dns/promises";
import { readFileSync, statSync } from "node:fs";
import { within } from "../core/published.ts";
import { type Address, readAddress } from "./addresses.ts";
import { canonicalName } from "./names.ts";

const ANSWER_MS = 5_000;
/** Of all sandboxes; the host's resolver works on a few at a time. */
const MOST_AT_ONCE = 64;
const MOST_ADDRESSES = 16;
/** What was found is good for a connection that follows at once; an attacker's name must not change under a check all the same. */
const KEPT_MS = { found: 10_000, none: 2_000 } as const;
const MOST_KEPT = 4096;

export class NotResolved extends Error {
  override name = "NotResolved";
}

interface Kept {
  addresses: Promise<Address[]>;
  until: number;
}

export class HostResolver {
  readonly #file: string;
  readonly #kept = new Map<string, Kept>();
  #hosts = new Map<string, Address[]>();
  #readAt = Number.NaN;
  #atOnce = 0;

  /** `file` has lines of an address and names, as /etc/hosts has; "" for none. */
  constructor(file: string) {
    this.#file = file;
  }

  /** The addresses of a canonical name, at most a few; none when there is no such name. Throws NotResolved. */
  async resolve(name: string): Promise<Address[]> {
    const listed = this.#listed(name);
    if (listed) return listed;
    const kept = this.#kept.get(name);
    if (kept && kept.until > performance.now()) return await kept.addresses;
    if (this.#atOnce >= MOST_AT_ONCE) throw new NotResolved("too many names are being looked up");
    const addresses = this.#lookUp(name);
    const entry: Kept = { addresses, until: performance.now() + KEPT_MS.found };
    this.#kept.delete(name);
    this.#kept.set(name, entry);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MOST_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    addresses.then(
      ({ length }) => {
        if (length === 0) entry.until = performance.now() + KEPT_MS.none;
      },
      () => this.#kept.delete(name),
    );
    return await addresses;
  }

  async #lookUp(name: string): Promise<Address[]> {
    this.#atOnce++;
    try {
      const found = await within(lookup(name, { all: true, verbatim: true }), ANSWER_MS, "the host's resolver");
      return found.slice(0, MOST_ADDRESSES).flatMap(({ address }) => readAddress(address) ?? []);
    } catch (error) {
      const code = Object(error).code;
      if (code === "ENOTFOUND" || code === "ENODATA" || code === "DNS_ENOTFOUND") return [];
      throw new NotResolved(`the host could not look up ${name}`, { cause: error });
    } finally {
      this.#atOnce--;
    }
  }

  #listed(name: string): Address[] | undefined {
    if (this.#file === "") return undefined;
    try {
      const { mtimeMs } = statSync(this.#file);
      if (mtimeMs !== this.#readAt) {
        this.#hosts = readHosts(readFileSync(this.#file, "utf8"));
        this.#readAt = mtimeMs;
      }
    } catch (cause) {
      throw new NotResolved(`egress.hosts_file ${this.#file} cannot be read`, { cause });
    }
    return this.#hosts.get(name);
  }
}

function readHosts(text: string): Map<string, Address[]> {
  const hosts = new Map<string, Address[]>();
  for (const line of text.split("\n")) {
    const [first = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    const address = readAddress(first);
    for (const written of address ? names : []) {
      const name = canonicalName(written);
      if (address && name) hosts.set(name, [...(hosts.get(name) ?? []), address]);
    }
  }
  return hosts;
}
