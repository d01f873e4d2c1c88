/**
 * Delivery lanes of all enabled webhooks, and their shared resources. Requests are signed in secrets.ts, failed ones retried in
 * delivery-lane.ts.
 */
import { isDeepStrictEqual } from "node:util";
import { MAX_WEBHOOKS } from "../../../shared/api/webhooks.ts";
import type { OrgId, WebhookId } from "../../../shared/ids.ts";
import { now, startTimer, stopTimer, timeoutSignal } from "../../core/clock.ts";
import { Deadlines } from "../../core/concurrency/deadlines.ts";
import { FairSemaphore } from "../../core/concurrency/fair-semaphore.ts";
import { DeadlineError } from "../../core/concurrency/published.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import { type Attempt, attempt, type Message } from "./attempt.ts";
import { Lane, type LaneDeps } from "./delivery-lane.ts";
import type { WebhookDeps } from "./deps.ts";
import { Pace } from "./pace.ts";
import type { WebhookSecrets } from "./secrets.ts";
import type { SsrfGuard } from "./ssrf-guard.ts";
import {
  changeProgress,
  deleteOwn,
  getProgress,
  getWebhook,
  insertProgress,
  listEnabled,
  listGone,
  renewWaiting,
} from "./store.ts";
import { noProgress, type Progress, type ProgressRow, type WebhookRow } from "./table.ts";

/**
 * Concurrent exchanges: of this host, of an organization, of a webhook, which needs one more for tests. A failing receiver has two of them
 * (delivery-lane.ts), so that an organization's hanging receivers leave slots for the others.
 */
const PLACES = { all: 256, org: 2 * MAX_WEBHOOKS, sandbox: 6, waiting: 16 } as const;
/** Events of an organization per second, of all its webhooks, including tests and retries; and the burst after a pause. */
const PACE = { perSecond: 50, atOnce: 50 } as const;
const TEST_WAIT_MS = 10_000;
/** Least interval between checks for changes by other hosts. */
const TOGETHER_MS = 500;

interface Tools {
  reach: SsrfGuard;
  secrets: WebhookSecrets;
}

export class Sender {
  readonly #deps: WebhookDeps;
  readonly #tools: Tools;
  readonly #places = new FairSemaphore(PLACES);
  readonly #pace = new Pace(PACE);
  readonly #deadlines = new Deadlines((webhookId) => this.look(webhookId as WebhookId));
  readonly #lanes = new Map<WebhookId, Lane>();
  /** Changes in progress by webhook, one after another. */
  readonly #changing = new Map<WebhookId, Promise<unknown>>();
  /** Lanes that have stopped sending and are writing their position. */
  readonly #closing = new Map<WebhookId, Promise<void>>();
  #isOn = false;
  /** Set for a while after a run of `follow`. */
  #followed: Timer | null = null;
  #mayDiffer = false;
  readonly #tries = { taken: 0, not_taken: 0 };

  constructor(deps: WebhookDeps, tools: Tools) {
    this.#deps = deps;
    this.#tools = tools;
  }

  /** Starts sending events, each webhook from its position. */
  start(): void {
    this.#isOn = true;
    this.#deps.directory.onChange(() => this.follow());
    this.follow();
  }

  /** Applies the present state of webhooks, which another host may have changed; calls in quick succession are combined. */
  follow(): void {
    if (!this.#isOn) return;
    if (this.#followed !== null) {
      this.#mayDiffer = true;
      return;
    }
    this.#mayDiffer = false;
    this.#waitToFollow();
    this.#followAll().catch((error: unknown) =>
      this.#deps.log.error("failed to follow changes of webhooks", { error: describeError(error) }),
    );
  }

  /** In pieces of the event loop. */
  async #followAll(): Promise<void> {
    const { database } = this.#deps;
    const pieces = new Pieces(loopTime, "host", "webhooks.follow");
    const enabled = new Set<WebhookId>();
    for (const page of listEnabled(database.queries)) {
      for (const row of page) {
        enabled.add(row.webhook_id);
        if (!isDeepStrictEqual(this.#lanes.get(row.webhook_id)?.row, row)) this.#renew(row);
      }
      const turn = pieces.next();
      if (turn) await turn;
      if (!this.#isOn) return;
    }
    for (const { row } of [...this.#lanes.values()]) if (!enabled.has(row.webhook_id)) this.#renew(row);
    if (listGone(database.queries).length === 0) return;
    await database.commit((within) => {
      for (const webhookId of listGone(within)) if (!this.#lanes.has(webhookId)) deleteOwn(within, webhookId);
    });
  }

  #renew({ org_id, webhook_id }: WebhookRow): void {
    void this.change(org_id, webhook_id, async () => {});
  }

  #waitToFollow(): void {
    this.#followed ??= startTimer(() => {
      this.#followed = null;
      if (this.#mayDiffer) this.follow();
    }, TOGETHER_MS);
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    stopTimer(this.#followed);
    await Promise.allSettled([...this.#changing.values()]);
    await Promise.all([...this.#lanes.keys(), ...this.#closing.keys()].map((webhookId) => this.#close(webhookId)));
    this.#deadlines.clear();
  }

  /** Current position while it is sending: the row is written later. */
  progressOf(webhookId: WebhookId): Readonly<Progress> | null {
    return this.#lanes.get(webhookId)?.progress ?? null;
  }

  /** Runs `work`, which changes the webhook's row, while sending is stopped; then continues as the row specifies. */
  async change<T>(orgId: OrgId, webhookId: WebhookId, work: () => Promise<T>): Promise<T> {
    const before = this.#changing.get(webhookId) ?? Promise.resolve();
    const changing = before
      .catch(() => undefined)
      .then(async () => {
        await this.#close(webhookId);
        try {
          return await work();
        } finally {
          await this.#reopen(orgId, webhookId);
        }
      });
    this.#changing.set(webhookId, changing);
    try {
      return await changing;
    } finally {
      if (this.#changing.get(webhookId) === changing) this.#changing.delete(webhookId);
    }
  }

  /** Of all organizations together: attempts since the daemon started by result, and lanes by whether their receivers accept anything. */
  figures() {
    const failing = [...this.#lanes.values()].filter(({ progress }) => progress.failing_since !== null).length;
    return { ...this.#tries, taking: this.#lanes.size - failing, failing };
  }

  /** An event is to be sent immediately. */
  look(webhookId: WebhookId): void {
    this.#lanes.get(webhookId)?.look();
  }

  /** Drops the state of a removed organization. */
  forgetOrg(orgId: OrgId): void {
    this.#pace.forget(orgId);
  }

  /** Sends a message independently of other events. Throws rate_limited if no slot is free. */
  async test(webhook: WebhookRow, message: Message, signal: AbortSignal): Promise<Attempt> {
    const asker = { org_id: webhook.org_id, sandbox_id: webhook.webhook_id };
    const inTime = AbortSignal.any([signal, timeoutSignal(TEST_WAIT_MS)]);
    const leave = await this.#enter(asker, inTime).catch((cause: unknown) => {
      if (!(cause instanceof DeadlineError)) throw cause;
      throw new ServiceError("rate_limited", {
        detail: "Too many events of the organization are being sent.",
        retryAfterSeconds: 5,
        cause,
      });
    });
    try {
      return await attempt(this.#tools, webhook, message, signal);
    } finally {
      leave();
    }
  }

  async #enter(asker: { org_id: OrgId; sandbox_id: WebhookId }, signal: AbortSignal): Promise<() => void> {
    await this.#pace.take(asker.org_id, signal);
    return await this.#places.take(asker, TEST_WAIT_MS, signal);
  }

  /** Sends as its row specifies. Never rejects: a failed start is retried. */
  async #reopen(orgId: OrgId, webhookId: WebhookId): Promise<void> {
    const { database, log } = this.#deps;
    try {
      const row = getWebhook(database.queries, orgId, webhookId);
      if (row && row.disabled_reason === null) await this.#open(row);
    } catch (error) {
      log.error("failed to start a webhook", { webhook_id: webhookId, error: describeError(error) });
      this.#mayDiffer = true;
      this.#waitToFollow();
    }
  }

  async #open(row: WebhookRow): Promise<void> {
    if (!this.#isOn) return;
    const progress = await this.#progressFor(row);
    if (!this.#isOn) return;
    const { database, directory, log, chains } = this.#deps;
    const deps: LaneDeps = {
      ...{
        database,
        shared: directory.database,
        log,
        chains,
        pace: this.#pace,
        places: this.#places,
        deadlines: this.#deadlines,
      },
      attempt: async (webhook, message, signal) => {
        const tried = await attempt(this.#tools, webhook, message, signal);
        // An attempt that was aborted here is no result of the receiver.
        if (tried.delivered || !signal.aborted) this.#tries[tried.delivered ? "taken" : "not_taken"]++;
        return tried;
      },
      isMakerGood: this.#deps.isMakerGood,
      endMade: this.#deps.endMade,
      onDisabled: (lane) => {
        if (this.#lanes.get(row.webhook_id) === lane) void this.#close(row.webhook_id).then(() => this.follow());
      },
    };
    this.#lanes.set(row.webhook_id, new Lane(deps, row, progress));
  }

  /**
   * Position at which this host continues. A webhook made on another host starts with events of this host since its creation, and a renewed
   * one has its five days again.
   */
  async #progressFor({ org_id, webhook_id, begins_at, renewed_at }: WebhookRow): Promise<Progress> {
    const { database, chains } = this.#deps;
    const known = getProgress(database.queries, webhook_id);
    if (known?.renewed_at === renewed_at) return placeOf(known);
    return await database.commit((within) => {
      if (getProgress(within, webhook_id)) {
        changeProgress(within, webhook_id, { failing_since: null, renewed_at });
        renewWaiting(within, webhook_id, now());
      } else {
        const begins = noProgress(chains.upTo(org_id, begins_at));
        insertProgress(within, { webhook_id, ...begins, renewed_at });
      }
      return placeOf(getProgress(within, webhook_id) as ProgressRow);
    });
  }

  /** Never rejects. */
  #close(webhookId: WebhookId): Promise<void> {
    const lane = this.#lanes.get(webhookId);
    if (!lane) return this.#closing.get(webhookId) ?? Promise.resolve();
    this.#lanes.delete(webhookId);
    const closing = lane.close().catch((error: unknown) => {
      this.#deps.log.error("failed to write the position of a webhook", {
        webhook_id: webhookId,
        error: describeError(error),
      });
    });
    this.#closing.set(webhookId, closing);
    void closing.then(() => this.#closing.delete(webhookId));
    return closing;
  }
}

function placeOf({ webhook_id: _, renewed_at: __, ...progress }: ProgressRow): Progress {
  return progress;
}
