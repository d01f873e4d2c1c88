/**
 * Client metadata documents: an application's client_id is the document's URL. Anyone can cause a fetch, so it connects only to public
 * addresses, to the resolved address, follows no redirects, and is limited in time and size.
 */

import { lookup } from "node:dns/promises";
import { request } from "node:https";
import type { LookupFunction } from "node:net";
import { LRUCache } from "lru-cache";
import { monotonicMs, startTimer, stopTimer } from "../../core/clock.ts";
import { ConcurrencyLimit } from "../../core/concurrency/concurrency-limit.ts";
import { parseJson } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { AGES } from "../../core/lru.ts";
import { ServiceError } from "../../core/service-error.ts";
import { kindOf, readAddress } from "../egress/addresses.ts";
import { type Client, readMetadata } from "./metadata.ts";
import { Refusal } from "./refusal.ts";

const FETCH_MS = 5000;
const MAX_BYTES = 64 * 1024;
const MAX_URL_CHARACTERS = 1024;
/** Cache lifetime of a client metadata document, whatever its server specifies. */
const FRESH_MS = { least: 60_000, most: 24 * 3_600_000, failed: 60_000, stale: 24 * 3_600_000 };
const MAX_KNOWN = 1000;
/** Concurrent fetches: in total, per asker, and per host. */
const MAX_FETCHES = { all: 16, asker: 2, host: 2 };

/** The party that looks up an application. */
export interface Asker {
  name: string;
  /** Called if a document has to be fetched. Throws if the asker has reached its limit of fetches. */
  requireFetch(): void;
}

export class ClientMetadata {
  /** Accepted hosts; empty: all with public addresses. */
  readonly #hosts: readonly string[];
  readonly #log: Pick<Log, "info">;
  readonly #known = new LRUCache<string, { client: Client; untilMs: number }>({ max: MAX_KNOWN });
  /** Refusals are cached apart from valid documents, so that invalid documents evict no valid ones. */
  readonly #refused = new LRUCache<string, Refusal>({ max: MAX_KNOWN, ttl: FRESH_MS.failed, ...AGES });
  readonly #fetching = new Map<string, Promise<Client>>();
  readonly #askers = new ConcurrencyLimit(MAX_FETCHES.asker, tooMany);
  readonly #hostsAsked = new ConcurrencyLimit(MAX_FETCHES.host, tooMany);

  constructor(hosts: readonly string[], log: Pick<Log, "info">) {
    this.#hosts = hosts;
    this.#log = log;
  }

  /** Throws invalid_client, rate_limited. */
  async read(clientId: string, asker: Asker): Promise<Client> {
    const url = requireUrl(clientId);
    const isListed = this.#hosts.includes(url.hostname);
    if (this.#hosts.length > 0 && !isListed)
      throw refused(`Applications of ${url.hostname} are not accepted by this service.`);
    if (url.port !== "" && !isListed) throw refused("The application's URL must have no port.");
    const known = this.#known.peek(clientId);
    if (known && known.untilMs > monotonicMs()) return known.client;
    const bad = this.#refused.peek(clientId);
    if (bad) throw bad;
    const under = this.#fetching.get(clientId);
    if (under) return await under;
    try {
      return await this.#begin(clientId, url, isListed, asker);
    } catch (error) {
      // A recently expired client metadata document is better than none.
      if (error instanceof ServiceError && known && known.untilMs + FRESH_MS.stale > monotonicMs()) return known.client;
      throw error;
    }
  }

  /** Throws invalid_client, and rate_limited if all fetch slots are in use. */
  async #begin(clientId: string, url: URL, mayBePrivate: boolean, asker: Asker): Promise<Client> {
    if (this.#fetching.size >= MAX_FETCHES.all) throw tooMany();
    const giveBack = [this.#askers.take(asker.name)];
    try {
      giveBack.push(this.#hostsAsked.take(url.hostname));
      asker.requireFetch();
      const fetching = this.#fetch(clientId, url, mayBePrivate).finally(() => this.#fetching.delete(clientId));
      this.#fetching.set(clientId, fetching);
      return await fetching;
    } finally {
      for (const each of giveBack) each();
    }
  }

  async #fetch(clientId: string, url: URL, mayBePrivate: boolean): Promise<Client> {
    try {
      const { body, freshMs } = await fetchDocument(url, mayBePrivate);
      const client = clientOf(clientId, body);
      this.#known.set(clientId, { client, untilMs: monotonicMs() + freshMs });
      return client;
    } catch (error) {
      const refusal =
        error instanceof Refusal ? error : refused("The application's client metadata document cannot be read.");
      // The reason is not shown to strangers: it reveals names and ports that only this host can reach.
      if (refusal !== error)
        this.#log.info("failed to read an application's client metadata document", {
          client_id: clientId,
          error: String(error),
        });
      this.#known.delete(clientId);
      this.#refused.set(clientId, refusal);
      throw refusal;
    }
  }
}

const tooMany = () =>
  new ServiceError("rate_limited", { detail: "Too many applications are being looked up.", retryAfterSeconds: 5 });
const refused = (detail: string) => new Refusal("invalid_client", detail);

function requireUrl(clientId: string): URL {
  const url = clientId.length > MAX_URL_CHARACTERS ? null : URL.parse(clientId);
  const isPlain = url && url.username === "" && url.password === "" && url.hash === "" && url.pathname !== "/";
  if (!isPlain || url.href !== clientId) throw refused("The application's URL must be absolute and have a path.");
  return url;
}

/** Throws invalid_client. */
function clientOf(clientId: string, body: string): Client {
  let document: unknown;
  try {
    document = parseJson(body);
  } catch {
    throw refused("The application's client metadata document is not JSON.");
  }
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    throw refused("The application's client metadata document must be an object.");
  }
  const metadata = document as Record<string, unknown>;
  // Otherwise any document could be presented as another application's.
  if (metadata.client_id !== clientId)
    throw refused("The application's client metadata document names another client_id.");
  const { name, redirect_uris } = readMetadata(metadata);
  return { client_id: clientId, name, redirect_uris };
}

/** Resolves a name, and accepts only addresses that may be connected to. */
const guarded =
  (mayBePrivate: boolean): LookupFunction =>
  (hostname, _options, callback) => {
    lookup(hostname, { all: true }).then(
      (found) => {
        const isOpen = ({ address }: { address: string }) => {
          const read = readAddress(address);
          return read !== null && (mayBePrivate || kindOf(read) === "public");
        };
        if (found.length > 0 && found.every(isOpen)) callback(null, found);
        else callback(refusedAddress(hostname), []);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };

const refusedAddress = (hostname: string): NodeJS.ErrnoException =>
  new Error(`${hostname} has an address that is not public`);

async function fetchDocument(url: URL, mayBePrivate: boolean): Promise<{ body: string; freshMs: number }> {
  const literal = readAddress(url.hostname.replace(/^\[|\]$/g, ""));
  if (literal && !mayBePrivate && kindOf(literal) !== "public")
    throw refused("The application's address is not public.");
  const { promise, resolve, reject } = Promise.withResolvers<{ body: string; freshMs: number }>();
  const headers = { accept: "application/json" };
  const clientRequest = request(url, { headers, lookup: guarded(mayBePrivate), agent: false }, (response) => {
    const { statusCode = 0, headers: answered } = response;
    const type = String(answered["content-type"] ?? "")
      .split(";")[0]
      ?.trim()
      .toLowerCase();
    if (statusCode !== 200)
      return reject(
        refused(`The request for the application's client metadata document was answered with ${statusCode}.`),
      );
    if (type !== "application/json")
      return reject(
        refused("The application's client metadata document does not have the content type application/json."),
      );
    let [body, bytes] = ["", 0];
    response.setEncoding("utf8");
    response.on("data", (text: string) => {
      body += text;
      bytes += Buffer.byteLength(text);
      if (bytes > MAX_BYTES) reject(refused(`The application's client metadata document is over ${MAX_BYTES} bytes.`));
    });
    response.on("error", reject);
    response.on("end", () => resolve({ body, freshMs: freshMsOf(String(answered["cache-control"] ?? "")) }));
  });
  const late = startTimer(
    () => reject(refused("Fetching the application's client metadata document took too long.")),
    FETCH_MS,
  );
  clientRequest.on("error", reject);
  clientRequest.end();
  try {
    return await promise;
  } finally {
    stopTimer(late);
    clientRequest.destroy();
  }
}

function freshMsOf(cacheControl: string): number {
  const seconds = Number(/max-age=(\d+)/.exec(cacheControl)?.[1] ?? 0);
  return Math.min(FRESH_MS.most, Math.max(FRESH_MS.least, seconds * 1000));
}
