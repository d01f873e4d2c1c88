/**
 * Locator: finds the host of an exposed port by its label, or of an SSH access by the hash of its token. Each host has only its own; for an
 * unknown label the others are queried, many labels per query, and one query at a time: a client that tries any number of labels does not
 * increase the number of queries.
 *
 *     label ──known──▶ its host, or none
 *       └── waiting, with up to a hundred others ──▶ one query to each host ──▶ cached for a while
 */

import { LRUCache } from "lru-cache";
import { newId } from "../../../shared/ids.ts";
import type { Host } from "../../cluster/directory.ts";
import { sleep, timeoutSignal } from "../../core/clock.ts";
import { AGES } from "../../core/lru.ts";
import { ServiceError } from "../../core/service-error.ts";
import { AdaptiveTimeout } from "./adaptive-timeout.ts";
import { type HostClient, unreachable } from "./client.ts";
import { forwardJson } from "./forward.ts";

/** A query between hosts, as `labels=a,b`. */
interface Question {
  path: string;
  /** Format of labels; other text is no host's label. */
  label: RegExp;
}

export const PORTS: Question = { path: "/-/ports", label: /^[a-z0-9][a-z0-9-]{0,62}$/ };
export const SSH_ACCESSES: Question = { path: "/-/ssh-accesses", label: /^[0-9a-f]{64}$/ };

const MAX_AT_ONCE = 100;
const BETWEEN_MS = 20;
const PATIENCE_MS = 1000;
/** How much longer than the wait a query stays open: its response may have arrived without being processed yet. */
const LATE_MS = 2000;
/** Limit of concurrent lookups; further ones are rejected immediately. */
const MAX_WAITING = 1000;
const MAX_KNOWN = 10_000;
/** A label may be released on one host, and taken on another. */
const FOUND_MS = 10_000;
const NONE_MS = 2000;

export interface LocatorDeps {
  question: Question;
  client: HostClient;
  /** The name of this host. */
  own: string;
  others(): Host[];
}

export class Locator {
  readonly #deps: LocatorDeps;
  readonly #patience = new AdaptiveTimeout();
  readonly #known = new LRUCache<string, { host: string | null }>({ max: MAX_KNOWN, ttl: FOUND_MS, ...AGES });
  readonly #waiting = new Map<string, PromiseWithResolvers<string | null>>();
  #isAsking = false;

  constructor(deps: LocatorDeps) {
    this.#deps = deps;
  }

  /** Null: no host has it. Rejects with rate_limited, and with host_unreachable if a host that does not answer may have it. */
  async hostOf(label: string): Promise<Host | null> {
    if (!this.#deps.question.label.test(label)) return null;
    const known = this.#known.peek(label);
    const hostId = known ? known.host : await this.#wait(label);
    return this.#deps.others().find(({ host_id }) => host_id === hostId) ?? null;
  }

  #wait(label: string): Promise<string | null> {
    const before = this.#waiting.get(label);
    if (before) return before.promise;
    if (this.#waiting.size >= MAX_WAITING) {
      throw new ServiceError("rate_limited", {
        detail: "Too many lookups of unknown ports or tokens are in progress.",
        retryAfterSeconds: 1,
      });
    }
    const waiting = Promise.withResolvers<string | null>();
    this.#waiting.set(label, waiting);
    if (!this.#isAsking) void this.#askAll();
    return waiting.promise;
  }

  async #askAll(): Promise<void> {
    this.#isAsking = true;
    try {
      while (this.#waiting.size > 0) {
        const labels = [...this.#waiting.keys()].slice(0, MAX_AT_ONCE);
        const answers = await Promise.all(this.#deps.others().map((host) => this.#askOne(host, labels)));
        for (const label of labels) this.#settle(label, answers);
        if (this.#waiting.size > 0) await sleep(BETWEEN_MS);
      }
    } catch (error) {
      for (const waiting of this.#waiting.values()) waiting.reject(error);
      this.#waiting.clear();
    } finally {
      this.#isAsking = false;
    }
  }

  #settle(label: string, answers: readonly Heard[]): void {
    const waiting = this.#waiting.get(label);
    this.#waiting.delete(label);
    const found = answers.find(({ labels }) => labels?.has(label));
    const silent = answers.find(({ labels }) => labels === null);
    if (!found && silent) {
      waiting?.reject(unreachable({ host_id: silent.host }, new Error("it did not answer the lookup")));
      return;
    }
    const host = found?.host ?? null;
    this.#known.set(label, { host }, { ttl: host === null ? NONE_MS : FOUND_MS });
    waiting?.resolve(host);
  }

  async #askOne(host: Host, labels: readonly string[]): Promise<Heard> {
    const { client, own, question } = this.#deps;
    const query = { labels: labels.join(",") };
    const request = { method: "GET", path: question.path, query };
    const about = { ip: null, request_id: newId("req"), own };
    const answering = forwardJson(client, host, request, about, timeoutSignal(PATIENCE_MS + LATE_MS)).then(labelsOf);
    return { host: host.host_id, labels: await this.#patience.until(host.host_id, answering, PATIENCE_MS) };
  }
}

interface Heard {
  host: string;
  /** The labels that it has; null: it did not answer. */
  labels: ReadonlySet<string> | null;
}

/** Throws if the response is invalid. */
function labelsOf({ status, body }: { status: number; body: unknown }): ReadonlySet<string> {
  const { labels } = (body ?? {}) as { labels?: unknown };
  if (status !== 200 || !Array.isArray(labels)) throw new Error(`it answered ${status}`);
  return new Set(labels);
}

/** Lookups in this host's own labels. */
export interface Answers {
  ports(label: string): boolean;
  sshAccesses(hash: string): boolean;
}

/** Answers another host's query; null: the request is not one. */
export function answerLocator(url: URL, { ports, sshAccesses }: Answers): Response | null {
  const has = url.pathname === PORTS.path ? ports : url.pathname === SSH_ACCESSES.path ? sshAccesses : null;
  if (has === null) return null;
  const requestedLabels = (url.searchParams.get("labels") ?? "").split(",").slice(0, MAX_AT_ONCE);
  return Response.json({ labels: requestedLabels.filter(has) });
}
