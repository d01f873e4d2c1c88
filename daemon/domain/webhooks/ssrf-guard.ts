/**
 * SSRF guard for webhook URLs: https only, with a name or address on the internet. Addresses of private networks and of this host must be
 * on the operator's list. A name is resolved once per attempt, and all its addresses must be allowed.
 */

import type { Asker } from "../../core/concurrency/fair-semaphore.ts";
import { unlessGivenUp } from "../../core/concurrency/published.ts";
import { type Config, ConfigError } from "../../core/config/config.ts";
import { type Address, contains, kindOf, type Range, readAddress, readRange, readRanges } from "../egress/addresses.ts";
import { makeIsHosts } from "../egress/host-addresses.ts";
import { canonicalName } from "../egress/names.ts";
import { HostResolver, NotResolved } from "../egress/resolver.ts";

const HTTPS_PORT = 443;
/** Lower ports belong to system services, which would misinterpret the request. */
const FIRST_FREE_PORT = 1024;
const LOOPBACK = ["127.0.0.0/8", "::1/128"].flatMap((text) => readRange(text) ?? []);

/** Why nothing was sent, as text for the webhook's owner. It contains no address: that may be one that only this host can see. */
export class Unreachable extends Error {
  override name = "Unreachable";
}

export interface SsrfPlan {
  private_ranges: readonly Range[];
  /** "" for none. */
  hosts_file: string;
}

/** Throws ConfigError. */
export function planSsrfGuard(config: Config): SsrfPlan {
  const private_ranges = readRanges(config["webhooks.private_ranges"], (part) => {
    throw new ConfigError(`webhooks.private_ranges: ${part} is neither an address nor a CIDR`);
  });
  return { private_ranges, hosts_file: config["egress.hosts_file"] };
}

export function portOf({ port }: URL): number {
  return port === "" ? HTTPS_PORT : Number(port);
}

/** The name that is resolved, and checked in the certificate. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

export class SsrfGuard {
  readonly #ranges: readonly Range[];
  readonly #isHosts = makeIsHosts();
  readonly #resolver: Pick<HostResolver, "resolve">;

  constructor(
    { private_ranges, hosts_file }: SsrfPlan,
    resolver: Pick<HostResolver, "resolve"> = new HostResolver(hosts_file, "host"),
  ) {
    this.#ranges = private_ranges;
    this.#resolver = resolver;
  }

  /** Why a URL is not allowed, as words that follow its name; null: allowed, as far as the URL shows. */
  refusalOf(text: string): string | null {
    const url = URL.parse(text);
    if (url?.protocol !== "https:") return "must be an https:// URL";
    if (url.username !== "" || url.password !== "" || url.hash !== "")
      return "must have neither a user, nor a password, nor a fragment";
    const port = portOf(url);
    if (port !== HTTPS_PORT && port < FIRST_FREE_PORT) return "must have port 443, or one above 1023";
    const literal = readAddress(hostOf(url));
    if (!literal && canonicalName(hostOf(url)) === null) return "has no valid host name";
    return literal && !this.#isOpen(literal) ? `has an address that webhooks may not be sent to: ${WHO_MAY}` : null;
  }

  /** Addresses that may be connected to. Throws Unreachable, also if `signal` aborts. */
  async addressesOf(url: URL, asker: Asker, signal: AbortSignal): Promise<Address[]> {
    const refusal = this.refusalOf(url.href);
    if (refusal !== null) throw new Unreachable(`The URL ${refusal}.`);
    const host = hostOf(url);
    const literal = readAddress(host);
    const found = literal ? [literal] : await this.#lookUp(host, asker, signal);
    if (found.length === 0 || !found.every((address) => this.#isOpen(address))) throw closed(host);
    return found;
  }

  async #lookUp(host: string, asker: Asker, signal: AbortSignal): Promise<Address[]> {
    try {
      return await unlessGivenUp(signal, this.#resolver.resolve(canonicalName(host) ?? host, asker));
    } catch (error) {
      if (error instanceof NotResolved) throw closed(host, error);
      if (signal.aborted) throw new Unreachable(`The lookup of ${host} was cancelled.`, { cause: error });
      throw error;
    }
  }

  #isOpen(address: Address): boolean {
    const kind = kindOf(address);
    if (kind === "public" && !this.#isHosts(address)) return true;
    const isLoopback = LOOPBACK.some((range) => contains(range, address));
    return (kind !== "never" || isLoopback) && this.#ranges.some((range) => contains(range, address));
  }
}

/** The same text for all reasons: names of this host's network must not be revealed. */
function closed(host: string, cause?: unknown): Unreachable {
  return new Unreachable(
    `${host} could not be looked up, or has an address that webhooks may not be sent to: ${WHO_MAY}.`,
    { cause },
  );
}

const WHO_MAY = "private networks need the operator's webhooks.private_ranges";
