/**
 * Owns which host has what is known by a label alone: an exposed port, or an SSH access by the hash of its token. Each host knows its own;
 * for one that is not here the others are asked, many labels at once, and one question at a time: whoever tries any number of labels makes
 * hosts ask each other no more often.
 *
 *   label ──known──▶ its host, or none
 *     └── waiting, with up to a hundred others ──▶ one question to each host ──▶ known for a while
 */

import { newId } from "../../../shared/ids.ts";
import type { Host } from "../../cluster/directory.ts";
import { monotonicMs, sleep, timeoutSignal } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import { type HostClient, unreachable } from "./client.ts";
import { forwardJson } from "./forward.ts";
import { Patience } from "./patience.ts";

/** What hosts alone are asked, as `labels=a,b`. */
interface Question {
  path: string;
  /** Anything else is no label of any host. */
  label: RegExp;
}

export const PORTS: Question = { path: "/-/ports", label: /^[a-z0-9][a-z0-9-]{0,62}$/ };
export const SSH_ACCESSES: Question = { path: "/-/ssh-accesses", label: /^[0-9a-f]{64}$/ };

const MOST_AT_ONCE = 100;
const BETWEEN_MS = 20;
const PATIENCE_MS = 1000;
/** So much longer than it is waited for a host is asked: its answer may be here, and not heard yet. */
const LATE_MS = 2000;
/** More than these wait for nothing. */
const MOST_WAITING = 1000;
const MOST_KNOWN = 10_000;
/** A label may be given up on one host, and taken on another. */
const FOUND_MS = 10_000;
const NONE_MS = 2000;

export interface WhereaboutsDeps {
  question: Question;
  client: HostClient;
  /** The name of this host. */
  own: string;
  others(): Host[];
}

export class Whereabouts {
  readonly #deps: WhereaboutsDeps;
  readonly #patience = new Patience();
  readonly #known = new Map<string, { host: string | null; until: number }>();
  readonly #waiting = new Map<string, PromiseWithResolvers<string | null>>();
  #isAsking = false;

  constructor(deps: WhereaboutsDeps) {
    this.#deps = deps;
  }

  /** Null: no host has it. Rejects with host_unreachable where one may have it that does not answer, rate_limited. */
  async hostOf(label: string): Promise<Host | null> {
    if (!this.#deps.question.label.test(label)) return null;
    const known = this.#known.get(label);
    const hostId = known && known.until > monotonicMs() ? known.host : await this.#wait(label);
    return this.#deps.others().find(({ host_id }) => host_id === hostId) ?? null;
  }

  #wait(label: string): Promise<string | null> {
    const before = this.#waiting.get(label);
    if (before) return before.promise;
    if (this.#waiting.size >= MOST_WAITING) {
      throw new ServiceError("rate_limited", {
        detail: "Too many unknown ports or tokens are asked for.",
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
        const labels = [...this.#waiting.keys()].slice(0, MOST_AT_ONCE);
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
      waiting?.reject(unreachable({ host_id: silent.host }, new Error("it was asked what it has")));
      return;
    }
    this.#remember(label, found?.host ?? null);
    waiting?.resolve(found?.host ?? null);
  }

  #remember(label: string, host: string | null): void {
    // The one that was learned first is forgotten first.
    this.#known.delete(label);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size < MOST_KNOWN) break;
      this.#known.delete(oldest);
    }
    this.#known.set(label, { host, until: monotonicMs() + (host === null ? NONE_MS : FOUND_MS) });
  }

  async #askOne(host: Host, labels: readonly string[]): Promise<Heard> {
    const { client, own, question } = this.#deps;
    const query = { labels: labels.join(",") };
    const asked = { method: "GET", path: question.path, query };
    const about = { ip: null, request_id: newId("req"), own };
    const answering = forwardJson(client, host, asked, about, timeoutSignal(PATIENCE_MS + LATE_MS)).then(labelsOf);
    return { host: host.host_id, labels: await this.#patience.until(host.host_id, answering, PATIENCE_MS) };
  }
}

interface Heard {
  host: string;
  /** Those that it has; null: it did not answer. */
  labels: ReadonlySet<string> | null;
}

/** Throws for what is no answer to the question. */
function labelsOf({ status, body }: { status: number; body: unknown }): ReadonlySet<string> {
  const { labels } = (body ?? {}) as { labels?: unknown };
  if (status !== 200 || !Array.isArray(labels)) throw new Error(`it answered ${status}`);
  return new Set(labels);
}

/** What this host has of each kind. */
export interface Answers {
  ports(label: string): boolean;
  sshAccesses(hash: string): boolean;
}

/** Another host's question, answered; null: it is none. */
export function answerWhereabouts(url: URL, { ports, sshAccesses }: Answers): Response | null {
  const has = url.pathname === PORTS.path ? ports : url.pathname === SSH_ACCESSES.path ? sshAccesses : null;
  if (has === null) return null;
  const asked = (url.searchParams.get("labels") ?? "").split(",").slice(0, MOST_AT_ONCE);
  return Response.json({ labels: asked.filter(has) });
}
