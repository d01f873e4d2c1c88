/**
 * Resolves names chosen by sandboxes and organizations: with `egress.hosts_file`, else with the host's DNS servers. The host's own names,
 * of /etc/hosts and its search domains, apply to the host's own connections only.
 */
import { LRUCache } from "lru-cache";
import type { DnsRecord } from "../../../shared/agent-protocol/messages.ts";
import { monotonicMs } from "../../core/clock.ts";
import { type Asker, FairSemaphore } from "../../core/concurrency/fair-semaphore.ts";
import { DeadlineError, within } from "../../core/concurrency/published.ts";
import { errnoOf } from "../../core/service-error.ts";
import { type Address, readAddress } from "./addresses.ts";
import { Dns } from "./dns.ts";
import { HostsFile } from "./hosts-file.ts";

/** Timeout for a slot, and again for an answer. */
const ANSWER_MS = 5_000;
/** All: with two queries each, fewer than the 150 that a forwarder such as dnsmasq handles concurrently. */
const PLACES = { all: 64, org: 16, sandbox: 8, waiting: 128 } as const;
const MAX_ADDRESSES = 16;
/** A result remains valid for a connection that follows immediately; yet an attacker's name must not change after a check. */
const KEPT_MS = { found: 10_000, none: 2_000, unanswered: 5_000 } as const;
const MAX_KEPT = 4096;

export class NotResolved extends Error {
  override name = "NotResolved";
}

interface CachedAddresses {
  addresses: Promise<Address[]>;
  until: number;
}

export class HostResolver {
  readonly #own: { path: string; file: HostsFile } | null;
  readonly #hosts: HostsFile | null;
  readonly #dns = new Dns();
  readonly #places = new FairSemaphore(PLACES);
  readonly #kept = new LRUCache<string, CachedAddresses>({ max: MAX_KEPT });

  /** `file` has lines of an address and names, like /etc/hosts; "" for none. Guests cannot resolve the host's own names. */
  constructor(file: string, client: "guest" | "host") {
    this.#hosts = client === "host" ? new HostsFile("/etc/hosts") : null;
    this.#own = file === "" ? null : { path: file, file: new HostsFile(file) };
  }

  /** Addresses of a canonical name, at most a few; empty if the name does not exist. Throws NotResolved. */
  async resolve(name: string, asker: Asker): Promise<Address[]> {
    const listed = this.#listed(name);
    if (listed) return listed;
    const known = this.#known(name);
    if (known) return await known;
    const leave = await this.#place(asker);
    // Another caller may have started the lookup since. A lookup that waits for a slot is not joined.
    const lookup = this.#known(name) ?? this.#keep(name, this.#lookUp(name));
    return await lookup.finally(leave);
  }

  /** Records of a canonical name, from DNS alone; empty if the name does not exist. Throws NotResolved. */
  async records(name: string, type: DnsRecord["type"], asker: Asker): Promise<DnsRecord[]> {
    const leave = await this.#place(asker);
    return await within(this.#dns.records(name, type), ANSWER_MS, "the host's DNS")
      .catch((cause: unknown) => {
        throw new NotResolved(`the host could not look up ${type} of ${name}`, { cause });
      })
      .finally(leave);
  }

  async #place(asker: Asker): Promise<() => void> {
    return await this.#places.take(asker, ANSWER_MS).catch((cause: unknown) => {
      throw new NotResolved("too many names are being looked up", { cause });
    });
  }

  #listed(name: string): Address[] | undefined {
    try {
      const own = this.#own?.file.addressesOf(name);
      if (own) return own;
    } catch (cause) {
      throw new NotResolved(`egress.hosts_file ${this.#own?.path} cannot be read`, { cause });
    }
    try {
      return this.#hosts?.addressesOf(name);
    } catch {
      return undefined;
    }
  }

  #known(name: string): Promise<Address[]> | null {
    const kept = this.#kept.peek(name);
    return kept && kept.until > monotonicMs() ? kept.addresses : null;
  }

  #keep(name: string, addresses: Promise<Address[]>): Promise<Address[]> {
    const entry: CachedAddresses = { addresses, until: monotonicMs() + KEPT_MS.found };
    this.#kept.set(name, entry);
    addresses.then(
      ({ length }) => {
        if (length === 0) entry.until = monotonicMs() + KEPT_MS.none;
      },
      ({ cause }: { cause?: unknown }) => {
        if (isUnanswered(cause)) entry.until = monotonicMs() + KEPT_MS.unanswered;
        else if (this.#kept.peek(name) === entry) this.#kept.delete(name);
      },
    );
    return addresses;
  }

  async #lookUp(name: string): Promise<Address[]> {
    try {
      const found = await within(this.#dns.lookUp(name, this.#hosts !== null), ANSWER_MS, "the host's DNS");
      return found.slice(0, MAX_ADDRESSES).flatMap((address) => readAddress(address) ?? []);
    } catch (cause) {
      throw new NotResolved(`the host could not look up ${name}`, { cause });
    }
  }
}

function isUnanswered(error: unknown): boolean {
  return error instanceof DeadlineError || errnoOf(error) === "ETIMEOUT";
}
