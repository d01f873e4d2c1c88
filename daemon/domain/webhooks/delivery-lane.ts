/**
 * Sends the events of one webhook. The audit's chain is the queue, and the webhook a position in it:
 *
 *     the next matching record ─► attempt ─► delivered: the position advances
 *                                      └──► failed: the position advances, and the event is stored for retry in the same commit
 *     an event stored for retry ─► attempt when due ─► delivered, failed and retried later, or finally failed
 *
 * So order holds while nothing fails, and failures block no later event. The position is written with a delay: after a crash the last
 * events are sent again, and none is skipped. If too many events wait for retry, the position waits: nothing is lost, since the events are
 * in the chain.
 */
import type { AuditRecord } from "../../../shared/api/audit.ts";
import { MAX_OVER, MAX_TRIES, MAX_WAITING } from "../../../shared/api/webhooks.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { at, monotonicMs, pause, sleep, wallMs } from "../../core/clock.ts";
import type { Deadlines } from "../../core/concurrency/deadlines.ts";
import type { FairSemaphore } from "../../core/concurrency/fair-semaphore.ts";
import { Published } from "../../core/concurrency/published.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { locally } from "../../db/dry-run.ts";
import type { Database } from "../../db/transact.ts";
import { appendAudit, type Chains } from "../audit/index.ts";
import type { Attempt, Message } from "./attempt.ts";
import { bodyOf, eventOf, isWanted } from "./event.ts";
import { ACTOR } from "./made.ts";
import type { Pace } from "./pace.ts";
import { isGivenUp, nextTry } from "./retry-schedule.ts";
import {
  changeProgress,
  changeWebhook,
  countWaiting,
  dropOver,
  getDelivery,
  getWebhook,
  nextDeliveries,
  putDelivery,
} from "./store.ts";
import type { DeliveryRow, Progress, WebhookRow } from "./table.ts";

/** Concurrent retries; of a failing receiver. */
const RETRIES_AT_ONCE = 4;
const RETRIES_OF_FAILING = 1;
/** Maximum delay before a moved position is written. */
const SAVE_MS = 500;
/** Skipped records after which its position is written anyway. */
const MAX_UNSAVED = 1000;
/** Records that arrive within this time of a skipped one are read together. */
const TOGETHER_MS = 20;
/** Delay after an internal error. */
const BROKEN_MS = 5000;
/** Longer than any wait for a slot. */
const ANY_TIME_MS = 2 ** 31 - 1;

export interface LaneDeps {
  database: Database;
  /** Database for changes to webhooks themselves. */
  shared: Database;
  log: Log;
  chains: Chains;
  pace: Pace;
  places: FairSemaphore;
  /** Times of the next retries, by the webhook's id. */
  deadlines: Deadlines;
  attempt(webhook: WebhookRow, message: Message, signal: AbortSignal): Promise<Attempt>;
  /** Whether the webhook's maker still has access. */
  isMakerGood(webhook: WebhookRow): boolean;
  /** Ends things in the organization with makers that have lost access. */
  endMade(orgId: OrgId): Promise<void>;
  /** It is disabled, and the audit record is written. */
  onDisabled(lane: Lane): void;
}

interface WhyDisabled {
  reason: "gone" | "failing";
  failing_since: string;
  last_status: number | null;
}

export class Lane {
  readonly #deps: LaneDeps;
  readonly #row: WebhookRow;
  readonly #progress: Progress;
  #savedSeq: number;
  #isSaving = false;
  readonly #over = new AbortController();
  readonly #retrying = new Map<string, Promise<void>>();
  /** Notified when the number of events stored for retry may have decreased. */
  readonly #fewer = new Published(0);
  /** Sending is paused until then: at the receiver's request, or after an internal error. */
  #quietUntilMs = 0;
  readonly #streaming: Promise<void>;

  constructor(deps: LaneDeps, row: WebhookRow, progress: Progress) {
    this.#deps = deps;
    this.#row = row;
    this.#progress = { ...progress };
    this.#savedSeq = progress.seq;
    this.#streaming = this.#stream();
    this.look();
  }

  /** The webhook in the version in use. */
  get row(): WebhookRow {
    return this.#row;
  }

  get progress(): Readonly<Progress> {
    return this.#progress;
  }

  /** Stops sending, and writes its position to disk. An interrupted event is sent again later. */
  async close(): Promise<void> {
    this.#over.abort();
    this.#deps.deadlines.set(this.#row.webhook_id, null);
    await Promise.all([this.#streaming, ...this.#retrying.values()]);
    await this.#deps.database.commit((queries) => this.#save(queries));
  }

  /** Starts retries that are due, and sets the time of the next check. */
  look(): void {
    const { database, deadlines } = this.#deps;
    const { webhook_id } = this.#row;
    if (this.#over.signal.aborted) return;
    const idle = nextDeliveries(database.queries, webhook_id, 2 * RETRIES_AT_ONCE + 1).filter(
      ({ delivery_id }) => !this.#retrying.has(delivery_id),
    );
    const quietMs = this.#quietMs();
    const isQuiet = quietMs > 0;
    const most = this.#progress.failing_since === null ? RETRIES_AT_ONCE : RETRIES_OF_FAILING;
    const now = at(wallMs());
    for (const row of isQuiet ? [] : idle) {
      if (this.#retrying.size >= most || String(row.next_at) > now) break;
      const retry = this.#retry(row).finally(() => {
        this.#retrying.delete(row.delivery_id);
        this.look();
      });
      this.#retrying.set(row.delivery_id, retry);
    }
    // Due events that found no slot are checked when a running retry ends.
    const next = idle.find((row) => isQuiet || String(row.next_at) > now)?.next_at ?? null;
    deadlines.set(webhook_id, next && isQuiet ? at(Math.max(wallMs() + quietMs, Date.parse(next))) : next);
  }

  /** Never rejects. */
  async #stream(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      try {
        const { org_id } = this.#row;
        const records = await this.#deps.chains.after(org_id, this.#progress.seq, signal);
        // The end of a maker's access is in the audit, so this check runs at that record at the latest.
        if (await this.#hasEnded()) return;
        let matching = 0;
        for (const record of records) {
          this.#noteMissed(record.seq - 1);
          if (isWanted(record, this.#row)) {
            if (await this.#hasEnded()) return;
            matching++;
            await this.#send(record);
          } else this.#progress.seq = record.seq;
          if (signal.aborted) return;
        }
        if (this.#progress.seq - this.#savedSeq >= MAX_UNSAVED) this.#saveSoon();
        if (matching === 0) await sleep(TOGETHER_MS, signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#broken(error);
        await pause(BROKEN_MS, signal);
      }
    }
  }

  /** Missing records before this one were purged before they could be read. */
  #noteMissed(upTo: number): void {
    const missed = upTo - this.#progress.seq;
    if (missed <= 0) return;
    this.#progress.missed_count += missed;
    this.#progress.seq = upTo;
    this.#deps.log.warn("a webhook missed records that the audit's retention deleted", {
      webhook_id: this.#row.webhook_id,
      missed,
    });
    this.#saveSoon();
  }

  /** The next event in order. */
  async #send(record: AuditRecord): Promise<void> {
    const { database } = this.#deps;
    const { webhook_id } = this.#row;
    const { signal } = this.#over;
    for (;;) {
      const { generation } = this.#fewer;
      if (countWaiting(database.queries, webhook_id) < MAX_WAITING) break;
      await this.#fewer.until(() => this.#fewer.generation !== generation, Number.POSITIVE_INFINITY, signal);
    }
    for (let quietMs = this.#quietMs(); quietMs > 0; quietMs = this.#quietMs()) {
      await sleep(quietMs, signal);
    }
    const tried = await this.#try(record);
    if (signal.aborted && !tried.delivered) return;
    const { audit_id: delivery_id, seq, event: type, at: event_at } = record;
    if (tried.delivered) {
      this.#noteSent(tried);
      this.#saveSoon();
    } else {
      const row = {
        webhook_id,
        delivery_id,
        seq,
        type,
        event_at,
        state: "waiting",
        attempts: 0,
        next_at: null,
      } as const;
      await this.#setAside({ ...row, last_attempt_at: null, status: null, error: null }, tried, seq);
    }
    this.#progress.seq = seq;
  }

  /** Retries a stored event. Never rejects. */
  async #retry(row: DeliveryRow): Promise<void> {
    const { database, chains } = this.#deps;
    const { signal } = this.#over;
    try {
      if (await this.#hasEnded()) return;
      const record = chains.at(this.#row.org_id, row.seq);
      if (record?.audit_id !== row.delivery_id) return await this.#lose(row);
      const tried = await this.#try(record);
      if (signal.aborted && !tried.delivered) return;
      if (!tried.delivered) return await this.#setAside(row, tried);
      this.#noteSent(tried);
      await database.commit((queries) => {
        this.#save(queries);
        if (this.#isRenewed(queries, row)) return;
        this.#end(queries, { ...resultOf(row, tried), state: "delivered", next_at: null });
      });
    } catch (error) {
      if (!signal.aborted) this.#broken(error);
    } finally {
      this.#fewer.set(0);
    }
  }

  async #try(record: AuditRecord): Promise<Attempt> {
    const { pace, places, attempt } = this.#deps;
    const { org_id, webhook_id } = this.#row;
    const { signal } = this.#over;
    // First: a wait here must not occupy a slot that another organization could have.
    await pace.take(org_id, signal);
    const leave = await places.take({ org_id, sandbox_id: webhook_id }, ANY_TIME_MS, signal);
    try {
      return await attempt(this.#row, { id: record.audit_id, body: bodyOf(eventOf(record)) }, signal);
    } finally {
      leave();
    }
  }

  #noteSent({ at_ms }: Attempt): void {
    this.#progress.sent_count++;
    this.#progress.last_sent_at = at(at_ms);
    this.#progress.failing_since = null;
  }

  /** Writes the failure, the time of the retry, the position `seq`, and, if the webhook is disabled for it, that too. */
  async #setAside(row: DeliveryRow, tried: Attempt, seq = this.#progress.seq): Promise<void> {
    const { database } = this.#deps;
    const { at_ms, asked_seconds, status, error } = tried;
    const failingSince = this.#progress.failing_since ?? at(at_ms);
    this.#progress.failing_since = failingSince;
    if (asked_seconds !== null) this.#beQuiet(asked_seconds * 1000);
    const reason = tried.isGone ? "gone" : isGivenUp(failingSince, wallMs()) ? "failing" : null;
    const result = resultOf(row, tried);
    // Events that wait when the webhook is disabled keep waiting: it may be enabled again.
    const isOver = reason === null && result.attempts >= MAX_TRIES;
    const next_at = nextTry(result.attempts, wallMs(), asked_seconds);
    await database.commit((queries) => {
      if (this.#isRenewed(queries, row)) this.#save(queries, seq);
      else if (isOver) {
        this.#count(queries, "failed_count", seq);
        this.#end(queries, { ...result, state: "failed", next_at: null });
      } else {
        this.#save(queries, seq);
        putDelivery(queries, { ...result, state: "waiting", next_at });
      }
    });
    const why: WhyDisabled | null = reason && { reason, failing_since: failingSince, last_status: status };
    if (why) await this.#disable(why, error).catch((failure: unknown) => this.#broken(failure));
    this.look();
  }

  /** Whether its maker has lost access: then the webhook is disabled, and sends nothing more. */
  async #hasEnded(): Promise<boolean> {
    if (this.#deps.isMakerGood(this.#row)) return false;
    // The call that ended the access has disabled it; but a key expires without a call.
    await this.#deps.endMade(this.#row.org_id);
    this.#deps.onDisabled(this);
    return true;
  }

  /** On all hosts. If the commit fails, the next failed event triggers it again. */
  async #disable(why: WhyDisabled, error: string | null): Promise<void> {
    const { shared, log, onDisabled } = this.#deps;
    const { org_id, webhook_id, renewed_at } = this.#row;
    const disabled_at = at(wallMs());
    const isDone = await shared.commit((queries) => {
      // Another host, or a caller, may have changed it since.
      const row = getWebhook(queries, org_id, webhook_id);
      if (row?.disabled_reason !== null || row.renewed_at !== renewed_at) return false;
      changeWebhook(queries, webhook_id, { disabled_reason: why.reason, disabled_at });
      locally(queries, (here) =>
        appendAudit(here, {
          event: "webhook.disabled",
          outcome: "success",
          at: disabled_at,
          org_id,
          actor: ACTOR,
          source: "reconciler",
          details: { webhook_id, ...why },
        }),
      );
      return true;
    });
    if (isDone) log.warn("a webhook was disabled", { webhook_id, reason: why.reason, error });
    onDisabled(this);
  }

  /** Its record was purged. */
  async #lose(row: DeliveryRow): Promise<void> {
    const error = "The audit's retention deleted the record before the receiver accepted it.";
    await this.#deps.database.commit((queries) => {
      if (this.#isRenewed(queries, row)) return;
      this.#count(queries, "missed_count");
      this.#end(queries, { ...row, state: "lost", next_at: null, error });
    });
  }

  /**
   * Within a transaction: whether a caller requested redelivery during the attempt. Then the row belongs to that, and the result of this
   * attempt does not apply to it. At the first attempt of an event, only a redelivery can have a row.
   */
  #isRenewed(queries: Queries, { webhook_id, delivery_id, attempts, next_at }: DeliveryRow): boolean {
    const found = getDelivery(queries, webhook_id, delivery_id);
    return found !== undefined && (found.attempts !== attempts || found.next_at !== next_at);
  }

  /** Within a transaction: counts a lost event, and writes the position with it. */
  #count(queries: Queries, counter: "failed_count" | "missed_count", seq = this.#progress.seq): void {
    this.#progress[counter]++;
    this.#deps.database.undo(() => void this.#progress[counter]--);
    this.#save(queries, seq);
  }

  /** Within a transaction: stores the final state of an event. */
  #end(queries: Queries, row: DeliveryRow): void {
    putDelivery(queries, row);
    dropOver(queries, row.webhook_id, MAX_OVER);
  }

  #saveSoon(): void {
    if (this.#isSaving) return;
    this.#isSaving = true;
    this.#deps.database
      .commitWithin(SAVE_MS, (queries) => {
        this.#isSaving = false;
        this.#save(queries);
      })
      .catch((error: unknown) => {
        this.#isSaving = false;
        this.#deps.log.error("failed to write the position of a webhook", { error: describeError(error) });
      });
  }

  /** Within a transaction. Writes all fields each time, so that the next commit has whatever a failed one could not write. */
  #save(queries: Queries, seq = this.#progress.seq): void {
    changeProgress(queries, this.#row.webhook_id, { ...this.#progress, seq });
    this.#savedSeq = seq;
  }

  #quietMs(): number {
    return this.#quietUntilMs - monotonicMs();
  }

  #beQuiet(ms: number): void {
    this.#quietUntilMs = Math.max(this.#quietUntilMs, monotonicMs() + ms);
  }

  #broken(error: unknown): void {
    this.#deps.log.error("failed to send to a webhook", {
      webhook_id: this.#row.webhook_id,
      error: describeError(error),
    });
    this.#beQuiet(BROKEN_MS);
  }
}

function resultOf(row: DeliveryRow, { at_ms, status, error }: Attempt): DeliveryRow {
  return { ...row, attempts: row.attempts + 1, last_attempt_at: at(at_ms), status, error };
}
