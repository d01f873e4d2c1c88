/**
 * Owns where webhooks may be sent to: https alone, by a name or an address that is of the internet. Addresses of private networks and of
 * this host want the operator's list. A name is looked up once for each try, and every address that it has must do.
 */

import { type Config, ConfigError } from "../../core/config.ts";
import type { Asker } from "../../core/fair-places.ts";
import { unlessGivenUp } from "../../core/published.ts";
import { type Address, contains, kindOf, type Range, readAddress, readRange, readRanges } from "../egress/addresses.ts";
import { makeIsHosts } from "../egress/host-addresses.ts";
import { canonicalName } from "../egress/names.ts";
import { HostResolver, NotResolved } from "../egress/resolver.ts";

const HTTPS_PORT = 443;
/** Below are services of systems, which take what they are sent for something else. */
const FIRST_FREE_PORT = 1024;
const LOOPBACK = ["127.0.0.0/8", "::1/128"].flatMap((text) => readRange(text) ?? []);

/** Why nothing was sent, in words for whoever owns the webhook. They name no address: it may be one that only we can see. */
export class Unreachable extends Error {
  override name = "Unreachable";
}

export interface ReachPlan {
  private_ranges: readonly Range[];
  /** "" for none. */
  hosts_file: string;
}

/** Throws ConfigError. */
export function planReach(config: Config): ReachPlan {
  const private_ranges = readRanges(config["webhooks.private_ranges"], (part) => {
    throw new ConfigError(`webhooks.private_ranges: ${part} is neither an address nor a CIDR`);
  });
  return { private_ranges, hosts_file: config["egress.hosts_file"] };
}

export function portOf({ port }: URL): number {
  return port === "" ? HTTPS_PORT : Number(port);
}

/** As it is looked up, and checked in the certificate. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "");
}

export class Reach {
  readonly #ranges: readonly Range[];
  readonly #isHosts = makeIsHosts();
  readonly #resolver: Pick<HostResolver, "resolve">;

  constructor(
    { private_ranges, hosts_file }: ReachPlan,
    resolver: Pick<HostResolver, "resolve"> = new HostResolver(hosts_file, "host"),
  ) {
    this.#ranges = private_ranges;
    this.#resolver = resolver;
  }

  /** Why nothing can be sent to a URL, as words that follow its name; null: as far as the URL tells it can. */
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

  /** The addresses that may be connected to. Throws Unreachable, also where `signal` is given. */
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
      if (signal.aborted) throw new Unreachable(`Looking up ${host} was given up.`, { cause: error });
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

/** The same words whatever the reason: which names this host's network has is nobody's business outside. */
function closed(host: string, cause?: unknown): Unreachable {
  return new Unreachable(
    `${host} could not be looked up, or has an address that webhooks may not be sent to: ${WHO_MAY}.`,
    { cause },
  );
}

const WHO_MAY = "private networks need the operator's webhooks.private_ranges";
