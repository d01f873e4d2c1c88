/**
 * Builds that organizations requested, from acceptance to their end: one at a time, organizations in turn, each with its stored output.
 *
 *     queued ─▶ pulling ─▶ building ─▶ booting ─▶ testing ─▶ ready        any ─▶ failed
 *
 * The order and its secrets are in memory only: a restarted daemon marks unfinished builds as failed.
 */
import type { BuildFailure } from "../../../../shared/api/template-builds.ts";
import { type BuildId, newId, type OrgId, type RoomUid } from "../../../../shared/ids.ts";
import { monotonicMs, now, startTimer, stopTimer } from "../../../core/clock.ts";
import { FairQueue } from "../../../core/concurrency/fair-queue.ts";
import { Published } from "../../../core/concurrency/published.ts";
import { repeat } from "../../../core/concurrency/repeat.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { templatesExceeded } from "../../orgs/index.ts";
import { largestInWork, templateMib } from "../org-disk.ts";
import {
  forgetBuildsOf,
  forgetOldBuilds,
  insertBuild,
  insertBuildEvent,
  unfinishedBuilds,
  updateBuild,
} from "../store.ts";
import type { BuildEventRow, BuildRow } from "../table.ts";
import type { BuildsDeps } from "./deps.ts";
import type { BuildOrder, BuildSaid } from "./order.ts";

/** Builds retained per organization, with their output. */
const KEPT_BUILDS = 20;
const MAX_LINES = 5000;
const LINE_CHARACTERS = 1000;
/** Batching: output within this time is written together. */
const TOGETHER_MS = 50;
/** Interval of measuring a build's disk usage: a fast disk takes a GiB in that time. */
const WATCH_MS = 1000;

/** A build that is waiting or running. */
interface Live {
  row: BuildRow;
  order: OrgOrder;
  /** Key to which its time is charged. */
  keyId: string;
  /** Monotonic start time; null while it waits. */
  sinceMs: number | null;
  lines: number;
  /** Aborted to end the build early; the reason is the cause. */
  over: AbortController;
  ended: PromiseWithResolvers<void>;
}

/** An organization's. */
export type OrgOrder = BuildOrder & { org_id: OrgId };

export class Builds {
  readonly #deps: BuildsDeps;
  readonly #live = new Map<BuildId, Live>();
  readonly #queue = new FairQueue<Live>();
  /** Signalled when a followed build has new output or has ended. */
  readonly #told = new Map<BuildId, { changed: Published<null>; readers: number }>();
  #current: Live | null = null;
  readonly #stopping = new AbortController();

  constructor(deps: BuildsDeps) {
    this.#deps = deps;
  }

  /** Within a transaction: accepts an order, which is started with `begin` after the commit. `admit` may refuse it. */
  accept(queries: Queries, order: OrgOrder): BuildRow {
    const row: BuildRow = {
      ...{ build_id: newId("bld"), org_id: order.org_id, template_id: order.template_id, state: "queued" },
      ...{ created_at: now(), started_at: null, finished_at: null, digest: null, failure: null, last_seq: 0 },
    };
    insertBuild(queries, row);
    forgetOldBuilds(queries, order.org_id, KEPT_BUILDS);
    return row;
  }

  begin(row: BuildRow, order: OrgOrder, keyId: string): void {
    const live: Live = {
      ...{ row, order, keyId, sinceMs: null, lines: 0 },
      ...{ over: new AbortController(), ended: Promise.withResolvers<void>() },
    };
    this.#live.set(row.build_id, live);
    this.#queue.add(row.org_id, live);
    this.#next();
  }

  /** Ends an unfinished build; resolves when nothing of it remains. */
  async end(buildId: BuildId): Promise<void> {
    const live = this.#live.get(buildId);
    if (!live) return;
    live.over.abort(ENDED);
    if (live !== this.#current) {
      this.#queue.remove(live.row.org_id, live);
      await this.#finish(live, ENDED);
    }
    await live.ended.promise;
  }

  /** Ends the builds of a removed organization, and deletes their stored records. */
  async forgetOrg(orgId: OrgId): Promise<void> {
    const all = [...this.#live.values()].filter(({ row }) => row.org_id === orgId);
    await Promise.all(all.map(({ row }) => this.end(row.build_id)));
    await this.#deps.database.commit((queries) => forgetBuildsOf(queries, orgId));
  }

  /** Builds that an earlier daemon did not finish have failed. */
  async recover(): Promise<void> {
    const left = unfinishedBuilds(this.#deps.database.queries);
    for (const row of left) await this.#write(row, RESTARTED);
  }

  /** Resolves when the build has output newer than `generation`, or the signal is aborted. */
  async changed(buildId: BuildId, generation: number, signal: AbortSignal): Promise<void> {
    const changed = this.#told.get(buildId)?.changed;
    if (!changed) return;
    await changed.until(() => changed.generation !== generation, Number.POSITIVE_INFINITY, signal).catch(() => {});
  }

  generation(buildId: BuildId): number {
    return this.#told.get(buildId)?.changed.generation ?? 0;
  }

  /** Registers a follower. Call the returned function to unregister. */
  follow(buildId: BuildId): () => void {
    const entry = this.#told.get(buildId) ?? { changed: new Published<null>(null), readers: 0 };
    this.#told.set(buildId, entry);
    entry.readers++;
    return () => {
      if (--entry.readers === 0) this.#told.delete(buildId);
    };
  }

  /** Aborted when the daemon stops, with the error for followers. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** The running build is aborted; waiting ones are not started. */
  async stop(): Promise<void> {
    this.#stopping.abort(new ServiceError("shutting_down"));
    const current = this.#current;
    current?.over.abort(RESTARTED);
    await current?.ended.promise;
  }

  #next(): void {
    if (this.#current !== null || this.stopping.aborted) return;
    const live = this.#queue.take();
    if (!live) return;
    this.#current = live;
    void this.#run(live).finally(() => {
      this.#current = null;
      this.#next();
    });
  }

  async #run(live: Live): Promise<void> {
    const { carryOut, log, paths, buildLimitSeconds } = this.#deps;
    const { org_id } = live.row;
    // Others wait for it.
    const deadline = startTimer(() => live.over.abort(tookTooLong(buildLimitSeconds)), buildLimitSeconds * 1000);
    let last: BuildFailure | { digest: string } | null = null;
    const hear = (message: BuildSaid) => {
      if ("ready" in message) last = { digest: message.ready.digest };
      else if ("failed" in message) last = message.failed;
      else void this.#tell(live, message);
    };
    try {
      const started_at = now();
      live.sinceMs = monotonicMs();
      live.row = { ...live.row, started_at };
      const before = await templateMib(paths, org_id);
      await this.#deps.database.commit((queries) => updateBuild(queries, live.row.build_id, { started_at }));
      const stopWatching = this.#watch(live);
      await carryOut(live.order, hear, live.over.signal).finally(stopWatching);
      await this.#lookAtSoft(org_id, before).catch((error: unknown) =>
        log.warn("failed to measure an organization's templates", { org_id, error: describeError(error) }),
      );
    } catch (error) {
      if (!live.over.signal.aborted) {
        log.error("failed to build a template", { build_id: live.row.build_id, error: describeError(error) });
      }
    }
    stopTimer(deadline);
    const { aborted, reason } = live.over.signal;
    await this.#finish(live, last ?? (aborted ? (reason as BuildFailure) : BROKEN));
  }

  /** Aborts the build once it is certain not to fit: this limits its writes until the version is complete. */
  #watch({ row: { org_id, template_id, build_id }, over }: Live): () => void {
    const { paths, capsOf, log } = this.#deps;
    return repeat(WATCH_MS, async () => {
      try {
        const caps = capsOf(org_id);
        const largest = await largestInWork(paths, org_id, template_id);
        const has = "With this build the organization has at least";
        if (largest > caps.hard_cap) over.abort(failureOf(templatesExceeded(largest, caps, has)));
      } catch (error) {
        log.warn("failed to measure the size of a build", { build_id, error: describeError(error) });
      }
    });
  }

  /** Reports if the soft cap is now exceeded. `before` is the templates' usage before the build. */
  async #lookAtSoft(orgId: OrgId, before: number): Promise<void> {
    const { paths, capsOf, onSoftExceeded } = this.#deps;
    const used = await templateMib(paths, orgId);
    const { soft_cap: cap } = capsOf(orgId);
    if (before <= cap && used > cap) onSoftExceeded(orgId, { used, cap });
  }

  /** Calls take effect in order. */
  async #tell(live: Live, message: Extract<BuildSaid, { stage: unknown } | { line: unknown }>): Promise<void> {
    const { build_id } = live.row;
    if ("line" in message && live.lines++ > MAX_LINES) return;
    const last_seq = live.row.last_seq + 1;
    const state = "stage" in message ? message.stage : null;
    const whole = "line" in message ? message.line.slice(0, LINE_CHARACTERS) : null;
    const line = live.lines > MAX_LINES && whole !== null ? "later output is not stored" : whole;
    live.row = { ...live.row, last_seq, ...(state && { state }) };
    const event: BuildEventRow = { build_id, seq: last_seq, at: now(), state, line };
    const { database, log } = this.#deps;
    try {
      await database.commitWithin(TOGETHER_MS, (queries) => {
        insertBuildEvent(queries, event);
        if (state) updateBuild(queries, build_id, { state });
      });
    } catch (error) {
      log.warn("failed to store a line of a build", { build_id, error: describeError(error) });
    }
    this.#ring(build_id);
  }

  async #finish(live: Live, how: BuildFailure | { digest: string }): Promise<void> {
    try {
      await this.#write(live.row, how, () => this.#count(live));
    } catch (error) {
      // The next daemon will mark it as failed.
      const { log } = this.#deps;
      log.error("failed to write the end of a build", { build_id: live.row.build_id, error: describeError(error) });
    }
    this.#live.delete(live.row.build_id);
    this.#ring(live.row.build_id);
    live.ended.resolve();
  }

  /** Within a transaction. */
  #count({ row: { org_id }, keyId: key_id, sinceMs }: Live): void {
    if (sinceMs === null) return;
    const place = { org_id, room_uid: "" as RoomUid, agent_id: "", key_id };
    this.#deps.meter.count(place, { build_ms: Math.round(monotonicMs() - sinceMs) });
  }

  async #write(row: BuildRow, how: BuildFailure | { digest: string }, along = () => {}): Promise<void> {
    const { build_id, template_id, org_id } = row;
    const isReady = "digest" in how;
    const change: Partial<BuildRow> = {
      ...{ state: isReady ? "ready" : "failed", finished_at: now(), last_seq: row.last_seq + 1 },
      ...(isReady ? { digest: how.digest } : { failure: how }),
    };
    await this.#deps.database.commit((queries) => {
      updateBuild(queries, build_id, change);
      along();
    }, true);
    const about = { template_id, build_id, ...(isReady ? { digest: how.digest } : { error_code: how.code }) };
    this.#deps.onEnded(org_id, isReady ? "success" : "error", about);
  }

  #ring(buildId: BuildId): void {
    this.#told.get(buildId)?.changed.set(null);
  }
}

const failure = (detail: string, hint: string | null): BuildFailure => ({
  ...{ code: "build_failed", detail, hint, details: {} },
});
const ENDED = failure("The build was ended before the template was ready.", null);
export const RESTARTED = failure(
  "The service was restarted while the template was being built.",
  "Start the build again.",
);
const BROKEN = failure(
  "The process of the build has ended.",
  "Start the build again; the host's operator finds the reason in the log.",
);

const tookTooLong = (seconds: number) =>
  failure(
    `The template was not ready after ${seconds} seconds, the maximum for a build on this host.`,
    "Split the build, or use an image with more preinstalled; the host's operator can raise limits.template_build.",
  );

/** A build's error for its record. Internal messages are never included. */
export function failureOf(error: unknown): BuildFailure {
  if (!(error instanceof ServiceError)) {
    return { ...failure("The template could not be built on this host.", BROKEN.hint), code: "internal" };
  }
  const { detail = error.message, hint = null, details = {} } = error.options;
  return { code: error.code, detail, hint, details };
}
