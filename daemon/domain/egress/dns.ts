/**
 * Queries to the DNS servers of /etc/resolv.conf, on the event loop: getaddrinfo would occupy one of the few threads for file reads until a
 * server answers.
 */
import { Resolver } from "node:dns/promises";
import { readFileSync } from "node:fs";
import type { DnsRecord } from "../../../shared/agent-protocol/messages.ts";
import { errnoOf } from "../../core/service-error.ts";
import { versionOf } from "./hosts-file.ts";

const SERVERS = "/etc/resolv.conf";
/** Per server: timeout in ms of a query, and number of tries. */
const PATIENCE = { timeout: 1_500, tries: 3 } as const;
/** c-ares caches responses for their TTL, without a limit on their number; a new resolver starts with an empty cache. */
const MAX_NAMES_OF_ONE = 4096;
/** Length of a full string of a TXT record (RFC 1035, 3.3). */
const FULL_STRING_BYTES = 255;
/** Error codes for a name that does not exist, or has no address of the family. */
const NO_SUCH_NAME = new Set(["ENOTFOUND", "ENODATA"]);

export class Dns {
  #resolver: Resolver | null = null;
  #names = 0;
  #version = "";
  #search: readonly string[] = [];

  /**
   * The addresses of a canonical name, as text; empty if the name does not exist. With `isSearched` a name of one label is first queried in
   * the domains of `search`; any other is queried unchanged. Rejects with the servers' error, or ETIMEOUT.
   */
  async lookUp(name: string, isSearched: boolean): Promise<string[]> {
    const resolver = this.#current();
    for (const domain of isSearched && !name.includes(".") ? this.#search : []) {
      const found = await addressesOf(resolver, `${name}.${domain}.`);
      if (found.length > 0) return found;
    }
    return await addressesOf(resolver, `${name}.`);
  }

  /** The records of a canonical name: empty also if the name does not exist, which Bun does not distinguish. Rejects as `lookUp` does. */
  async records(name: string, type: DnsRecord["type"]): Promise<DnsRecord[]> {
    try {
      return await recordsOf(this.#current(), `${name}.`, type);
    } catch (error) {
      if (NO_SUCH_NAME.has(errnoOf(error) ?? "")) return [];
      throw error;
    }
  }

  #current(): Resolver {
    const version = versionIfAny(SERVERS);
    if (!this.#resolver || version !== this.#version || this.#names >= MAX_NAMES_OF_ONE) {
      this.#search = version === "" ? [] : searchOf(readFileSync(SERVERS, "utf8"));
      this.#resolver = new Resolver(PATIENCE);
      this.#version = version;
      this.#names = 0;
    }
    this.#names++;
    return this.#resolver;
  }
}

/** The search domains of resolv.conf for short names; the last line of the kind counts. */
export function searchOf(text: string): string[] {
  const lines = [...text.matchAll(/^(?:search|domain)[ \t]+(.*)$/gm)];
  const domains = lines.at(-1)?.[1]?.trim().split(/\s+/) ?? [];
  return domains.map((domain) => domain.replace(/\.$/, "")).filter((domain) => domain !== "");
}

async function recordsOf(resolver: Resolver, name: string, type: DnsRecord["type"]): Promise<DnsRecord[]> {
  switch (type) {
    case "SRV":
      return (await resolver.resolveSrv(name)).map(({ name: target, priority, weight, port }) => ({
        ...{ type, priority, weight, port, target },
      }));
    case "MX":
      return (await resolver.resolveMx(name)).map(({ exchange, priority }) => ({
        ...{ type, preference: priority, target: exchange },
      }));
    case "TXT":
      return wholeTexts((await resolver.resolveTxt(name)).flat()).map((texts) => ({ type, texts }));
  }
}

/** Bun returns each string of a TXT record as a record; a string of full length continues in the next. */
function wholeTexts(strings: readonly string[]): string[][] {
  const records: string[][] = [];
  let isOpen = false;
  for (const text of strings) {
    if (isOpen) records.at(-1)?.push(text);
    else records.push([text]);
    isOpen = Buffer.byteLength(text) === FULL_STRING_BYTES;
  }
  return records;
}

async function addressesOf(resolver: Resolver, name: string): Promise<string[]> {
  const results = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  const found = results.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  const failed = results.find((each) => each.status === "rejected" && !NO_SUCH_NAME.has(errnoOf(each.reason) ?? ""));
  // One family is enough if the servers fail for the other.
  if (found.length === 0 && failed?.status === "rejected") throw failed.reason;
  return found;
}

function versionIfAny(path: string): string {
  try {
    return versionOf(path);
  } catch {
    return "";
  }
}
