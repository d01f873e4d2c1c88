/**
 * Rounds: the commit protocol for shared rows. Changes are few, so they are serialized, in rounds that one host runs at a time; changes
 * that wait on a host share a round.
 *
 *   lock     the cluster directory's counter, which every round locks: no concurrent changes
 *   try      each change runs on this host's tables with the latest rows, and is rolled back: the rows that it would write, or its refusal
 *            (db/dry-run.ts)
 *   note     the calls of the changes that were not refused; if one was carried out before, they are retried (done-calls.ts)
 *   write    the rows, numbered, and the counter; COMMIT: from here on the change is final
 *   bring    other hosts' latest rows and these are applied to this host's tables, with the part of the change that is local to this host
 *
 * No host waits for the disk of another: the lock is not held while this host's database is flushed.
 *
 * A host that dies between the last two finds the rows in the directory again, as every other host does; if it has no record of them, it
 * writes one then (recovered.ts).
 */
import { randomUUID } from "node:crypto";
import type { CallStats } from "../core/call/call-stats.ts";
import { monotonicMs } from "../core/clock.ts";
import { nextTurn } from "../core/concurrency/next-turn.ts";
import { faultPoint } from "../core/fault-points.ts";
import type { Log } from "../core/log.ts";
import { describeError, ServiceError } from "../core/service-error.ts";
import type { Queries } from "../db/client.ts";
import type { LocalStep, Rehearsed } from "../db/dry-run.ts";
import type { SharedRow, SharedRows } from "../db/shared-rows.ts";
import type { LocalDatabase } from "../db/transact.ts";
import type { Connections, Run } from "./connections.ts";
import { byChange, Copy } from "./copy.ts";
import { type NamedCall, RoundCalls } from "./done-calls.ts";
import { holds, type Member, type MembershipLock } from "./membership-lock.ts";
import { lackingRows } from "./put-again.ts";
import { type Recovered, recoveredOf } from "./recovered.ts";
import {
  type Changes,
  hasChange,
  isNothing,
  isSame,
  type NumberedRow,
  PAGE_CHANGES,
  type Point,
  pointOf,
  type Rest,
  readChanges,
  setPoint,
} from "./replica.ts";
import { CHANNEL } from "./schema.ts";
import { removedAmong } from "./tombstones.ts";
import { DirectoryUnavailable } from "./unavailable.ts";
import { isUnfit, someUnfit } from "./unfit.ts";
import { WholeComparison } from "./whole.ts";

/** Deadline of a whole round, or of one page; a directory that takes longer counts as unavailable. */
export const ROUND_MS = 5_000;
/** A copy that was current this recently lacks few changes: they are read within the round. */
const FRESH_MS = 2_000;
const TRY_UNFIT_MS = 60_000;
/** Log message. */
export const APPLY_FAILED = "failed to apply a change from the directory";
const MAX_LOGGED = 20;
/** Maximum number of lost rows put into the cluster directory again by one change. */
const MAX_AGAIN = 500;
/** Page size, in changes, if some of the changes may have to be recorded in the audit. */
const FEW_CHANGES = 250;
const MAX_CHANGES = 64;
/** Time for the trial of a round's changes, and again for applying them here; each blocks one turn of the event loop. */
const TRY_MS = 8;
/** Latest rows of other hosts that one trial applies, in some milliseconds; the last trial of a round applies a whole page. */
const MAX_LATEST_ROWS = 100;

export interface RoundDeps {
  database: LocalDatabase;
  shared: SharedRows;
  connections: Connections;
  member: Member;
  log: Log;
  /** Time for which changes wait for an outdated copy; absent: without limit, but a round is retried for ROUND_MS. */
  patienceMs?: number;
  /** Statistics of rounds; absent for operator commands. */
  tally?: CallStats;
  /** Called after another host has changed shared rows. */
  onNews(): void;
  /** The lock by which this daemon, and no other with its data, is the member; absent, or null: an operator command. */
  run?(): MembershipLock | null;
  /**
   * Daemons only: called for a committed change of this host that has no audit record, because the daemon ended or did not receive the
   * answer. Within a commit.
   */
  recovered?(queries: Queries, change: Recovered): void;
  /** Daemons only: called for a change that put lost ends, revocations or epochs into the cluster directory again. Within a commit. */
  putAgain?(queries: Queries, change: Recovered): void;
}

/** Thrown within a round if the cluster directory has another history: the copy is compared first. */
class CopyOutdated extends Error {
  override name = "CopyOutdated";
}
const MAX_ATTEMPTS = 3;
/** Thrown within a round if the copy is far behind: it is brought up to date first, again and again until a deadline. */
class CopyBehind extends Error {
  override name = "CopyBehind";
}
const asAway = (error: unknown) =>
  error instanceof CopyOutdated || error instanceof CopyBehind
    ? new DirectoryUnavailable("terminated", error.message)
    : error;

interface Change {
  work(queries: Queries): unknown;
  vital: boolean;
  beside: ((run: Run) => Promise<unknown>) | undefined;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** Result of a committed round. */
interface Round {
  /** Changes of other hosts that the copy lacks. */
  latest: Changes;
  point: Point;
  rows: SharedRow[];
  /** Whether the cluster directory records the round as a change: it has rows, or notes calls. */
  isChange: boolean;
  tried: Rehearsed<unknown>[];
}

export class Rounds {
  readonly #deps: RoundDeps;
  #waiting: Change[] = [];
  /** Pending request for the next pull. */
  #asking: PromiseWithResolvers<void> | null = null;
  #running: Promise<void> | null = null;
  /** Monotonic time at which the copy was last known to be current. */
  #wholeAt = Number.NEGATIVE_INFINITY;
  /** Number of failed pulls, and the last error. */
  #failures = 0;
  #failure: unknown = null;
  /** The last change that was reported to `onNews`. */
  #told: string | null = null;
  /** Rounds with an unknown outcome. */
  readonly #unknown = new Set<string>();
  /** Whether nothing was read yet: changes of this host since its copy was complete are from before its restart. */
  #isFirst = true;
  /** Calls with an Idempotency-Key in the round in progress. */
  #calls: RoundCalls | null = null;
  readonly #copy: Copy;
  /** The comparison of the whole copy, if one is in progress. */
  #whole: WholeComparison | null = null;
  /** Of the last page. */
  #rest: Rest | null = null;
  /** Whether the last catch-up ran out of time before the last page. */
  #isBehind = false;
  /** Changes by which this process put lost rows into the cluster directory again. */
  readonly #putBack = new Set<string>();
  #triedUnfitAt = Number.NEGATIVE_INFINITY;

  constructor(deps: RoundDeps) {
    this.#deps = deps;
    this.#copy = new Copy(deps.database, deps.shared);
  }

  /**
   * Commits the change, or rejects: as `work` throws, with cluster_unavailable, not_a_member, or disk_full. `beside` runs in the directory
   * in the same transaction.
   */
  change<T>(work: (queries: Queries) => T, vital: boolean, extra?: (run: Run) => Promise<unknown>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, vital, beside: extra, resolve: resolve as (value: unknown) => void, reject });
      this.#run();
    });
  }

  /** Within a change: the host that carried out its call earlier; null: none, and the call is noted with the change. */
  doneBy(call: NamedCall): string | null {
    return this.#calls?.doneBy(call) ?? null;
  }

  /** Applies new changes. Settles with the attempt. */
  async pull(): Promise<void> {
    this.#asking ??= Promise.withResolvers();
    const { promise } = this.#asking;
    this.#run();
    await promise;
  }

  /** Resolves once the copy has all changes that the cluster directory had at the time of the call. Rejects with cluster_unavailable. */
  async follow(): Promise<void> {
    const askedAt = monotonicMs();
    // A pull in progress may have queried earlier.
    while (this.#wholeAt < askedAt) {
      const failures = this.#failures;
      await this.pull();
      if (this.#failures > failures && this.#wholeAt < askedAt) throw this.#unavailable(this.#failure);
    }
  }

  /** Whether the copy was ever current. */
  get hasFollowed(): boolean {
    return this.#wholeAt !== Number.NEGATIVE_INFINITY;
  }

  /** Upper bound of the copy's delay. */
  get staleMs(): number {
    return monotonicMs() - this.#wholeAt;
  }

  /** Settles when no round or pull is in progress. */
  async settle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  #run(): void {
    this.#running ??= this.#rounds().finally(() => {
      this.#running = null;
      if (this.#waiting.length > 0 || this.#asking) this.#run();
    });
  }

  async #rounds(): Promise<void> {
    // Changes of the same turn share the first round.
    await nextTurn();
    while (this.#waiting.length > 0 || this.#asking) {
      const pending = this.#asking;
      this.#asking = null;
      const batch = this.#waiting.splice(0, MAX_CHANGES);
      if (batch.length === 0) await this.#pullOnce();
      else await this.#round(batch);
      pending?.resolve();
    }
  }

  async #pullOnce(): Promise<void> {
    try {
      await this.#catchUp();
    } catch (error) {
      this.#noteAway(error);
      if (!(error instanceof DirectoryUnavailable))
        this.#deps.log.error("failed to read the directory's changes", { error: describeError(error) });
    }
    // The next pull reads the remaining pages, so that queued changes do not wait for all of them.
    if (this.#isBehind) this.#asking ??= Promise.withResolvers();
  }

  /**
   * Brings the copy to a state of the cluster directory from now on. Rejects with DirectoryUnavailable if that takes long; the next pull
   * retries.
   */
  async #catchUp(): Promise<void> {
    const { patienceMs = Number.POSITIVE_INFINITY } = this.#deps;
    const until = monotonicMs() + patienceMs;
    this.#isBehind = false;
    try {
      for (;;) {
        const askedAt = monotonicMs();
        if (await this.#readPage()) {
          this.#wholeAt = askedAt;
          this.#isFirst = false;
          break;
        }
        if (monotonicMs() < until) continue;
        this.#isBehind = true;
        throw new DirectoryUnavailable("timeout", `this host's replica was not up to date within ${patienceMs} ms`);
      }
    } finally {
      this.#tell();
    }
    await this.#tryUnfit();
  }

  /** Reads and applies one page. Returns whether it is the last. */
  async #readPage(): Promise<boolean> {
    const { connections, log } = this.#deps;
    const from = this.#copy.point;
    if (this.#whole && !isSame(this.#whole.from, from)) this.#whole = null;
    if (this.#whole === null) {
      const { to, changes, isSetBack, isDue } = await connections.transaction(
        async (run) => ({
          ...(await this.#changesAfter(run, from)),
          isDue: this.#copy.isOwed && (await this.#isMember(run)),
        }),
        ROUND_MS,
      );
      const isBack = changes !== null && this.#hasRemoved(changes);
      if (changes && !isDue && !isBack) return (await this.#bring(from, changes)) && changes.isLast;
      if (!changes && !isNothing(from))
        log.warn("the directory's history differs from this host's: comparing the replica with it", {
          from: from.seq,
          to: to.seq,
        });
      this.#whole = new WholeComparison(connections, this.#copy, from, to, isSetBack || isDue || isBack);
    }
    const isCompared = await this.#whole.next();
    if (this.#whole.isVoid) this.#whole = null;
    if (!isCompared || this.#whole === null) return false;
    const isOwed = !(await this.#putAgain(this.#whole));
    if (this.#whole.isVoid) {
      this.#whole = null;
      return false;
    }
    if (isOwed) await this.#copy.setOwed(true);
    await this.#copy.reach(from, this.#whole.to, this.#whole.seen ?? this.#whole.to);
    if (!isOwed) await this.#copy.setOwed(false);
    this.#whole = null;
    return false;
  }

  /** Whether changes insert rows that were removed: a directory that was set back twice may have them in changes that are new here. */
  #hasRemoved({ rows }: Changes): boolean {
    return removedAmong(this.#deps.database.queries, rows).size > 0;
  }

  /** Whether the cluster directory has this host as a member, by this daemon. */
  async #isMember(run: Run): Promise<boolean> {
    const { host_id, incarnation } = this.#deps.member;
    const held = this.#deps.run?.() ?? null;
    const lease = "SELECT FROM roomd.leases WHERE host_id = $1 AND incarnation = $2";
    const { rows } = await (held
      ? run(`${lease} AND run = $3`, [host_id, incarnation, held.run])
      : run(lease, [host_id, incarnation]));
    return rows.length > 0;
  }

  #changesAfter(run: Run, from: Point) {
    const most = this.#isFirst || this.#unknown.size > 0 ? FEW_CHANGES : PAGE_CHANGES;
    return readChanges(run, from, this.#copy.seen, this.#rest, this.#deps.member, most);
  }

  /** Retries unfit rows: they may fit after other rows have arrived, or with another version of this program. */
  async #tryUnfit(): Promise<void> {
    const { log, onNews } = this.#deps;
    const isNew = this.#copy.hasNewUnfit;
    const isFirst = this.#triedUnfitAt === Number.NEGATIVE_INFINITY;
    if (!isNew && monotonicMs() - this.#triedUnfitAt < TRY_UNFIT_MS) return;
    this.#triedUnfitAt = monotonicMs();
    if (await this.#copy.tryUnfit()) onNews();
    const rows = isNew || isFirst ? someUnfit(this.#copy.queries, MAX_LOGGED) : [];
    if (rows.length > 0) log.warn("rows of the directory do not fit this host's tables", { rows });
  }

  /** `until`: monotonic time from which on the trial applies a whole page; finite after a trial for which the copy was too far behind. */
  async #round(roundChanges: readonly Change[], attempt = 1, until = Number.POSITIVE_INFINITY): Promise<void> {
    const { connections, patienceMs = ROUND_MS } = this.#deps;
    const change_id = randomUUID();
    const askedAt = monotonicMs();
    let found: Round | null = null;
    let maxLatestRows = MAX_LATEST_ROWS;
    /** The changes of this round; the rest wait for the next round. The callback of a transaction that is over continues. */
    const split = () => {
      const batch = roundChanges.slice(0, found?.tried.length);
      this.#waiting.unshift(...roundChanges.slice(batch.length));
      return batch;
    };
    try {
      // Changes are read before the lock is taken, so that other hosts do not wait for the reading.
      const isRetry = attempt > 1 || until < Number.POSITIVE_INFINITY;
      if (isRetry || this.staleMs > FRESH_MS) await this.#catchUp();
      if (monotonicMs() >= until) maxLatestRows = Number.POSITIVE_INFINITY;
      await connections.transaction(async (run) => {
        await this.#lock(run);
        const round = await this.#try(run, roundChanges, change_id, maxLatestRows);
        found = round;
        if (round.isChange) await writeRows(run, round.point, round.rows, this.#deps.member.host_id);
        for (const [index, outcome] of round.tried.entries()) {
          const extra = roundChanges[index]?.beside;
          if (extra && outcome && !("error" in outcome)) await extra(run);
        }
        await faultPoint("round.written");
      }, ROUND_MS);
    } catch (error) {
      if (error instanceof CopyBehind && maxLatestRows === MAX_LATEST_ROWS)
        return await this.#round(roundChanges, attempt, Math.min(until, monotonicMs() + patienceMs));
      if (error instanceof CopyOutdated && attempt < MAX_ATTEMPTS)
        return await this.#round(roundChanges, attempt + 1, until);
      if (!(found && (await this.#isTrue(error, change_id)))) {
        this.#deps.tally?.note(false, askedAt);
        return await this.#failed(split(), asAway(error));
      }
    }
    const batch = split();
    this.#deps.tally?.note(true, askedAt);
    await faultPoint("round.true");
    await this.#finish(batch, found as unknown as Round, askedAt);
  }

  /** The cluster directory's refusal of one change must not fail the others. */
  async #failed(batch: readonly Change[], error: unknown): Promise<void> {
    if (batch.length > 1 && !(error instanceof DirectoryUnavailable || error instanceof ServiceError)) {
      for (const change of batch) await this.#round([change]);
      return;
    }
    for (const change of batch) change.reject(this.#unavailable(error));
    // An error of the change itself is no failure of the directory.
    if (error instanceof DirectoryUnavailable || error instanceof ServiceError) this.#noteAway(error);
  }

  /** Changes that arrived while the cluster directory did not answer have waited for the whole timeout. */
  #noteAway(error: unknown): void {
    this.#failures++;
    this.#failure = error;
    if (!(error instanceof DirectoryUnavailable && error.reason === "timeout")) return;
    const failure = new DirectoryUnavailable("timeout", error.message, { cause: error });
    for (const change of this.#waiting.splice(0)) change.reject(this.#unavailable(failure));
    this.#asking?.resolve();
    this.#asking = null;
  }

  /** From now on no other host changes anything, until the transaction ends. */
  async #lock(run: Run): Promise<void> {
    const { member, run: holder } = this.#deps;
    const { cluster_id, host_id, incarnation } = member;
    const { rows } = await run(
      `SELECT cluster_id = $1 AND EXISTS (SELECT FROM roomd.leases WHERE host_id = $2 AND incarnation = $3) AS is_member
         FROM roomd.cluster FOR UPDATE`,
      [cluster_id, host_id, incarnation],
    );
    const held = holder?.() ?? null;
    if (rows[0]?.is_member === true && (held === null || (await holds(run, member, held)))) return;
    throw new ServiceError("not_a_member", {
      detail: "This host is no longer a member: it was removed, or another host runs on a copy of its data.",
    });
  }

  async #try(run: Run, batch: readonly Change[], change_id: string, maxLatestRows: number): Promise<Round> {
    const latest = await this.#readLatest(run, maxLatestRows);
    if (this.#copy.isOwed) throw new CopyOutdated("the directory lacks rows of this host's replica");
    const calls = new RoundCalls(this.#deps.member.host_id);
    for (;;) {
      const { rows, tried } = this.#rehearse(batch, calls, latest);
      if (!(await calls.note(run))) continue;
      const { to } = latest;
      const isChange = rows.length > 0 || calls.hasAny;
      return { latest, point: isChange ? { seq: to.seq + 1, change_id } : to, rows, isChange, tried };
    }
  }

  /** Changes since the last catch-up. More than a trial can apply are read outside of the lock. */
  async #readLatest(run: Run, maxRows: number): Promise<Changes> {
    const { changes } = await this.#changesAfter(run, this.#copy.point);
    if (!changes) throw new CopyOutdated("the directory does not have the position of this host's replica");
    if (this.#hasRemoved(changes)) throw new CopyOutdated("the directory has removed rows again");
    if (!changes.isLast || changes.rows.length > maxRows) throw new CopyBehind("this host's replica is too far behind");
    return changes;
  }

  #rehearse(batch: readonly Change[], calls: RoundCalls, latest: Changes): Pick<Round, "rows" | "tried"> {
    const { database, shared } = this.#deps;
    const rows = new Map<string, SharedRow>();
    let changed: () => SharedRow[] = () => [];
    const works = batch.map(({ work }) => (queries: Queries) => {
      changed = shared.try();
      calls.beginChange();
      return work(queries);
    });
    const note = () => {
      const written = changed();
      if (isUnfit(database.queries, written)) throw unfitChange();
      for (const row of written) rows.set(`${row.tbl} ${row.key}`, row);
      calls.endChange();
    };
    calls.beginTrial();
    this.#calls = calls;
    try {
      const tried = database.rehearse(works, note, TRY_MS, (queries) => {
        // Another process with the same copy may have applied them.
        if (!isSame(pointOf(queries), latest.to)) this.#copy.write(queries, latest.rows);
      });
      return { rows: [...rows.values()], tried };
    } finally {
      this.#calls = null;
    }
  }

  /** Whether a round with an unknown outcome was committed. Waits for its lock, so the answer is final. */
  async #isTrue(error: unknown, change_id: string): Promise<boolean> {
    if (!(error instanceof DirectoryUnavailable && error.ambiguous)) return false;
    try {
      return await this.#deps.connections.transaction(async (run) => {
        await run("SELECT FROM roomd.cluster FOR UPDATE");
        const { rows } = await run("SELECT FROM roomd.changes WHERE change_id = $1", [change_id]);
        return rows.length > 0;
      }, ROUND_MS);
    } catch {
      // The caller gets the outcome "unknown"; if it turns out to be committed, that is recorded.
      this.#unknown.add(change_id);
      return false;
    }
  }

  /** Applies a page of changes. Returns false if another process has moved the copy's point. */
  async #bring(from: Point, changes: Changes): Promise<boolean> {
    const { shared, recovered } = this.#deps;
    if (changes.rows.length > 0 || !isSame(from, changes.to)) {
      const lost = changes.own.filter(({ change_id }) => this.#isLost(change_id));
      const all = lost.length > 0 ? byChange(changes.rows) : new Map();
      const first = (queries: Queries, piece: readonly NumberedRow[], isLast: boolean) => {
        const rows = lost.length > 0 ? byChange(piece) : all;
        for (const change of lost) {
          const own = rows.get(change.seq) ?? (isLast && !all.has(change.seq) ? [] : null);
          if (own) recovered?.(queries, recoveredOf(shared, change, own));
        }
      };
      if (changes.seen.seq > changes.to.seq) await this.#copy.see(changes.seen);
      if (!(await this.#copy.bring(from, changes.rows, changes.to, first))) return false;
      for (const { change_id } of lost) this.#unknown.delete(change_id);
    }
    this.#rest = changes.rest;
    return true;
  }

  /** Whether a change of this host may lack its audit record. */
  #isLost(change_id: string): boolean {
    return this.#unknown.has(change_id) || (this.#isFirst && !this.#putBack.has(change_id));
  }

  /**
   * Inserts rows that the directory has lost. Returns false if this host is no member. A directory without the newest change of the
   * comparison was set back meanwhile: the comparison is void, and its rows stay out.
   */
  async #putAgain(whole: WholeComparison): Promise<boolean> {
    const { again, isSetBack } = whole;
    const { connections, database, shared, member } = this.#deps;
    let isMember = true;
    while (again.length > 0 && !whole.isVoid) {
      const names = again.slice(0, MAX_AGAIN);
      const point = { seq: 0, change_id: randomUUID() };
      let rows: NumberedRow[] = [];
      try {
        rows = await connections.transaction(async (run) => {
          await this.#lock(run);
          whole.isVoid = !(await hasChange(run, whole.seen));
          if (whole.isVoid) return [];
          const missing = await lackingRows(run, this.#copy, names, isSetBack);
          if (missing.length === 0) return [];
          const [head] = (await run("SELECT seq FROM roomd.cluster")).rows;
          point.seq = Number(head?.seq) + 1;
          await writeRows(run, point, missing, member.host_id);
          // If a host's removal is put into the directory again, its lease is deleted: it is no longer a member.
          for (const { tbl, key } of missing)
            if (tbl === "hosts") await run("DELETE FROM roomd.leases WHERE host_id = $1::json ->> 0", [key]);
          return missing.map((row) => ({ ...row, seq: point.seq }));
        }, ROUND_MS);
      } catch (error) {
        if (!(error instanceof ServiceError && error.code === "not_a_member")) throw error;
        isMember = false;
        await this.#copy.keep(names.filter(({ isLacking }) => isLacking));
      }
      if (rows.length > 0) {
        whole.seen = point;
        this.#putBack.add(point.change_id);
        await database.commit((queries) => {
          this.#deps.putAgain?.(queries, recoveredOf(shared, point, rows));
          this.#copy.write(queries, rows);
        });
      }
      again.splice(0, names.length);
    }
    return isMember;
  }

  /** The rows, and the local part of each change: all in one commit, in which each can fail separately. */
  async #finish(
    batch: readonly Change[],
    { latest, point, rows, isChange, tried }: Round,
    askedAt: number,
  ): Promise<void> {
    const { database, log } = this.#deps;
    const [before] = await Promise.allSettled([this.#bringLatest(latest)]);
    if (before.status === "fulfilled") this.#wholeAt = askedAt;
    const bring = (queries: Queries) => {
      if (before.status === "rejected") throw before.reason;
      // Another process with the same copy has applied this change, and possibly later ones.
      if (!isSame(pointOf(queries), latest.to)) return;
      this.#copy.write(queries, rows);
      setPoint(queries, point);
    };
    const work = isChange || before.status === "rejected" ? bring : null;
    const steps = tried.map((outcome) => ("error" in outcome ? [] : outcome.steps));
    const isNeeded = work !== null || steps.some((each) => each.length > 0);
    const works = [work ?? (() => {}), ...steps.map((each) => (queries: Queries) => runAll(each, queries))];
    const isVital = batch.some(({ vital }) => vital);
    const [brought, ...ran] = isNeeded ? await database.commitTogether(works, isVital) : [];
    if (brought?.status === "rejected") {
      // Rows that failed to apply to this host's copy are still in the cluster directory: the next round or pull applies them, and records
      // this change.
      if (isChange) this.#unknown.add(point.change_id);
      log.error(APPLY_FAILED, { error: describeError(brought.reason) });
    }
    if (isChange) this.#told = point.change_id;
    for (const [index, change] of batch.entries()) {
      const outcome = tried[index];
      const written = steps[index]?.length === 0 ? brought : ran[index];
      if (!outcome || "error" in outcome) change.reject(outcome?.error);
      else if (written?.status === "rejected") change.reject(written.reason);
      else change.resolve(outcome.value);
    }
  }

  async #bringLatest(latest: Changes): Promise<void> {
    // Another process with the same copy may apply some of them concurrently.
    for (let at = this.#copy.point; at.seq < latest.to.seq; at = this.#copy.point) await this.#bring(at, latest);
    this.#tell();
  }

  /** Also for changes that an operator's command has applied concurrently; the first time in any case. */
  #tell(): void {
    const { change_id } = pointOf(this.#deps.database.queries);
    if (this.#told === change_id) return;
    this.#told = change_id;
    this.#deps.onNews();
  }

  #unavailable(error: unknown): unknown {
    if (!(error instanceof DirectoryUnavailable)) return error;
    const isUnknown = error.ambiguous ? " The outcome of the change is unknown." : "";
    // The database's address and error message are for the operator only, in the log.
    return new ServiceError("cluster_unavailable", {
      detail: `The database that hosts share does not answer (${error.reason}).${isUnknown}`,
      cause: error,
    });
  }
}

function unfitChange(): ServiceError {
  return new ServiceError("cluster_unavailable", {
    detail: "A row that the call changes was written by a newer version and does not fit the tables of this host.",
    hint: "Call another host, or upgrade this host.",
  });
}

/** Writes the rows of a change, and the change as the last one. Within the transaction that has the lock. */
export async function writeRows(
  run: Run,
  { seq, change_id }: Point,
  rows: readonly SharedRow[],
  hostId: string,
): Promise<void> {
  await run(
    `INSERT INTO roomd.rows (tbl, key, "row", seq)
       SELECT tbl, key, "row"::jsonb, $2 FROM json_to_recordset($1::json) AS given (tbl text, key text, "row" text)
     ON CONFLICT (tbl, key) DO UPDATE SET seq = excluded.seq,
       "row" = CASE WHEN excluded."row" IS NULL THEN NULL ELSE coalesce(roomd.rows."row", '{}') || excluded."row" END`,
    [JSON.stringify(rows), seq],
  );
  await run("INSERT INTO roomd.changes (seq, change_id, host_id) VALUES ($1, $2, $3)", [seq, change_id, hostId]);
  await run("UPDATE roomd.cluster SET seq = $1", [seq]);
  await run(`NOTIFY ${CHANNEL}`);
}

function runAll(steps: readonly LocalStep[], queries: Queries): void {
  for (const step of steps) step(queries);
}
