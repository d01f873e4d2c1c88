/** Owns finding the addresses of names for sandboxes: by a file of the operator's, by the host's /etc/hosts, else by its resolver. */
import { lookup } from "node:dns/promises";
import { readFileSync, statSync } from "node:fs";
import { within } from "../../core/published.ts";
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
  readonly #files: readonly HostsFile[];
  readonly #kept = new Map<string, Kept>();
  #atOnce = 0;

  /** `file` has lines of an address and names, as /etc/hosts has; "" for none. */
  constructor(file: string) {
    this.#files = [...(file === "" ? [] : [new HostsFile(file, "needed")]), new HostsFile("/etc/hosts", "optional")];
  }

  /** The addresses of a canonical name, at most a few; none when there is no such name. Throws NotResolved. */
  async resolve(name: string): Promise<Address[]> {
    for (const file of this.#files) {
      const listed = file.addressesOf(name);
      if (listed) return listed;
    }
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
      // Whole as it is: what this host would add to a name that does not exist is another name, and not the list's.
      const asked = name.includes(".") ? `${name}.` : name;
      const found = await within(lookup(asked, { all: true, verbatim: true }), ANSWER_MS, "the host's resolver");
      return found.slice(0, MOST_ADDRESSES).flatMap(({ address }) => readAddress(address) ?? []);
    } catch (error) {
      const code = Object(error).code;
      if (code === "ENOTFOUND" || code === "ENODATA" || code === "DNS_ENOTFOUND") return [];
      throw new NotResolved(`the host could not look up ${name}`, { cause: error });
    } finally {
      this.#atOnce--;
    }
  }
}

/** A file of lines of an address and names, read again when it has changed. */
class HostsFile {
  readonly #path: string;
  readonly #presence: "needed" | "optional";
  #hosts = new Map<string, Address[]>();
  #version = "";

  constructor(path: string, presence: "needed" | "optional") {
    this.#path = path;
    this.#presence = presence;
  }

  /** Throws NotResolved when it is needed and cannot be read. */
  addressesOf(name: string): Address[] | undefined {
    try {
      const { mtimeMs, size, ino } = statSync(this.#path);
      const version = `${mtimeMs} ${size} ${ino}`;
      if (version !== this.#version) this.#hosts = readHosts(readFileSync(this.#path, "utf8"));
      this.#version = version;
    } catch (cause) {
      if (this.#presence === "optional") return undefined;
      throw new NotResolved(`egress.hosts_file ${this.#path} cannot be read`, { cause });
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
