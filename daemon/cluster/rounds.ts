/**
 * Owns how a change becomes true for all hosts. Changes are few, so they come one after another, in rounds that one host has at a time;
 * what waits on a host shares one.
 *
 *   lock     the directory's counter, which is every round's: nothing is changed meanwhile
 *   catch up this host's copy is brought up to date, so that its tables say what is true
 *   try      each change runs on them, and is taken back: what it would write, or why it is refused (db/rehearsal.ts)
 *   note     the calls of the changes that were not refused; if one was carried out before, they are tried again (done-calls.ts)
 *   write    the rows, numbered, and the counter; COMMIT: from here on it is true
 *   bring    the rows come into this host's tables, with what of the change is this host's alone
 *
 * A host that dies between the last two finds the rows in the directory again, as every other host does; what of them it left no record
 * of it records then (recovered.ts).
 */
import { randomUUID } from "node:crypto";
import { monotonicMs } from "../core/clock.ts";
import { faultPoint } from "../core/fault-points.ts";
import type { Log } from "../core/log.ts";
import { describeError, ServiceError } from "../core/service-error.ts";
import type { Tally } from "../core/tally.ts";
import { nextTurn } from "../core/turn.ts";
import type { Queries } from "../db/client.ts";
import type { LocalStep, Rehearsed } from "../db/rehearsal.ts";
import type { SharedRow, SharedRows } from "../db/shared-rows.ts";
import type { LocalDatabase } from "../db/transact.ts";
import { DirectoryAway } from "./away.ts";
import type { Connections, Run } from "./connections.ts";
import { type NamedCall, RoundCalls } from "./done-calls.ts";
import { type Holder, holds, type Member } from "./holder.ts";
import { bringing, type News, type NumberedRow, newsSince, type Point, pointOf, unsaid } from "./mirror.ts";
import { withOneWay } from "./one-way.ts";
import { type Recovered, recoveredOf } from "./recovered.ts";
import { CHANNEL } from "./schema.ts";

/** All of a round; a directory that takes longer is away. */
const ROUND_MS = 5_000;
const MOST_CHANGES = 64;

export interface RoundDeps {
  database: LocalDatabase;
  shared: SharedRows;
  connections: Connections;
  member: Member;
  log: Log;
  /** How rounds go; absent: an operator's command counts none. */
  tally?: Tally;
  /** Something that is shared was changed elsewhere. */
  onNews(): void;
  /** By which a daemon is a member, and no other with its data; absent, or null: an operator's command. */
  run?(): Holder | null;
  /** A daemon's: a change of this host is true of which it left no record, as it ended, or lost the answer. Within a commit. */
  recovered?(queries: Queries, change: Recovered): void;
  /** A daemon's: the directory had lost ends, revocations or epochs, and has them again by this change. Within a commit. */
  putAgain?(queries: Queries, change: Recovered): void;
}

interface Change {
  work(queries: Queries): unknown;
  vital: boolean;
  beside: ((run: Run) => Promise<unknown>) | undefined;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** What a round has come to once it is true. */
interface Round {
  point: Point;
  rows: SharedRow[];
  /** Of these the ones that the directory had lost. */
  again: NumberedRow[];
  /** Whether the directory has it as a change: it has rows, or notes calls. */
  isChange: boolean;
  tried: Rehearsed<unknown>[];
}

export class Rounds {
  readonly #deps: RoundDeps;
  #waiting: Change[] = [];
  /** The next time that it is asked what is new. */
  #asking: PromiseWithResolvers<void> | null = null;
  #running: Promise<void> | null = null;
  /** When the copy was last known to be whole, by the monotonic clock. */
  #wholeAt = Number.NEGATIVE_INFINITY;
  /** How often that could not be asked, and why the last time. */
  #failures = 0;
  #failure: unknown = null;
  /** The last change that was told of. */
  #told: string | null = null;
  /** Of rounds whose end is not known. */
  readonly #unknown = new Set<string>();
  /** Whether nothing was read yet: what this host changed since its copy was whole, it did before it ended. */
  #isFirst = true;
  /** The directory does not have this host as a member: it puts nothing in. */
  #isRefused = false;
  /** Of the round under way. */
  #calls: RoundCalls | null = null;

  constructor(deps: RoundDeps) {
    this.#deps = deps;
  }

  /**
   * Makes it true, or rejects: as `work` throws, with cluster_unavailable, not_a_member, or disk_full. `beside` is done in the directory in the same
   * transaction.
   */
  change<T>(work: (queries: Queries) => T, vital: boolean, beside?: (run: Run) => Promise<unknown>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, vital, beside, resolve: resolve as (value: unknown) => void, reject });
      this.#run();
    });
  }

  /** Within a change: the host that carried out its call earlier; null: none, and the call is noted with the change. */
  doneBy(call: NamedCall): string | null {
    return this.#calls?.doneBy(call) ?? null;
  }

  /** Brings what is new. Settles with the attempt. */
  async pull(): Promise<void> {
    this.#asking ??= Promise.withResolvers();
    const { promise } = this.#asking;
    this.#run();
    await promise;
  }

  /** Resolves once the copy is as the directory was at a moment from now on. Rejects with cluster_unavailable. */
  async follow(): Promise<void> {
    const askedAt = monotonicMs();
    // A pull that is under way may have asked before.
    while (this.#wholeAt < askedAt) {
      const failures = this.#failures;
      await this.pull();
      if (this.#failures > failures && this.#wholeAt < askedAt) throw this.#unavailable(this.#failure);
    }
  }

  /** Whether the copy was ever as the directory was. */
  get hasFollowed(): boolean {
    return this.#wholeAt !== Number.NEGATIVE_INFINITY;
  }

  /** For how long the copy may be behind. */
  get staleMs(): number {
    return monotonicMs() - this.#wholeAt;
  }

  /** Settles once nothing is under way. */
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
    // What comes in this turn shares the first.
    await nextTurn();
    while (this.#waiting.length > 0 || this.#asking) {
      const asked = this.#asking;
      this.#asking = null;
      const batch = this.#waiting.splice(0, MOST_CHANGES);
      if (batch.length === 0) await this.#pullOnce();
      else await this.#round(batch);
      asked?.resolve();
    }
  }

  async #pullOnce(): Promise<void> {
    const { connections, database, log } = this.#deps;
    const askedAt = monotonicMs();
    try {
      const from = pointOf(database.queries);
      const news = await connections.transaction((run) => newsSince(run, from, this.#deps.member), ROUND_MS);
      const again = await this.#bring(from, news);
      this.#wholeAt = askedAt;
      if (again.length > 0) await this.#round([]);
    } catch (error) {
      this.#noteAway(error);
      if (!(error instanceof DirectoryAway))
        log.error("the directory's changes not read", { error: describeError(error) });
    }
  }

  async #round(batch: readonly Change[]): Promise<void> {
    const { connections } = this.#deps;
    const change_id = randomUUID();
    const askedAt = monotonicMs();
    let found: Round | null = null;
    try {
      await connections.transaction(async (run) => {
        await this.#lock(run);
        found = await this.#try(run, batch, change_id);
        if (found.isChange) await writeRows(run, found.point, found.rows, this.#deps.member.host_id);
        // A host that is gone again is a member no more.
        for (const { tbl, key } of found.again)
          if (tbl === "hosts") await run("DELETE FROM roomd.leases WHERE host_id = $1::json ->> 0", [key]);
        for (const [index, { beside }] of batch.entries()) {
          const outcome = found.tried[index];
          if (beside && outcome && !("error" in outcome)) await beside(run);
        }
        await faultPoint("round.written");
      }, ROUND_MS);
    } catch (error) {
      if (!(found && (await this.#isTrue(error, change_id)))) {
        this.#deps.tally?.note(false, askedAt);
        return await this.#failed(batch, error);
      }
    }
    this.#deps.tally?.note(true, askedAt);
    await faultPoint("round.true");
    this.#wholeAt = askedAt;
    await this.#finish(batch, found as unknown as Round);
  }

  /** What the directory refuses of one change is no fault of the others. */
  async #failed(batch: readonly Change[], error: unknown): Promise<void> {
    if (batch.length > 1 && !(error instanceof DirectoryAway || error instanceof ServiceError)) {
      for (const change of batch) await this.#round([change]);
      return;
    }
    for (const change of batch) change.reject(this.#unavailable(error));
    // What is wrong with a change says nothing of the directory.
    if (error instanceof DirectoryAway || error instanceof ServiceError) this.#noteAway(error);
  }

  /** Who came while the directory did not answer has waited for as long as one waits for it. */
  #noteAway(error: unknown): void {
    this.#failures++;
    this.#failure = error;
    if (!(error instanceof DirectoryAway && error.reason === "timeout")) return;
    const told = new DirectoryAway("timeout", error.message, { cause: error });
    for (const change of this.#waiting.splice(0)) change.reject(this.#unavailable(told));
    this.#asking?.resolve();
    this.#asking = null;
  }

  /** From here on nobody else changes anything, until the transaction ends. */
  async #lock(run: Run): Promise<void> {
    const { member, run: holder } = this.#deps;
    const { cluster_id, host_id, incarnation } = member;
    const { rows } = await run(
      `SELECT cluster_id = $1 AND EXISTS (SELECT FROM roomd.leases WHERE host_id = $2 AND incarnation = $3) AS is_member
         FROM roomd.cluster FOR UPDATE`,
      [cluster_id, host_id, incarnation],
    );
    const held = holder?.() ?? null;
    this.#isRefused = !(rows[0]?.is_member === true && (held === null || (await holds(run, member, held))));
    if (!this.#isRefused) return;
    throw new ServiceError("not_a_member", {
      detail: "This host is no member any more: it was removed, or another one runs on a copy of its data.",
    });
  }

  async #try(run: Run, batch: readonly Change[], change_id: string): Promise<Round> {
    const { database } = this.#deps;
    let at = pointOf(database.queries);
    let again: NumberedRow[];
    // Somebody beside this process may have brought some of it meanwhile.
    for (;;) {
      const news = await newsSince(run, at, this.#deps.member);
      again = await this.#bring(at, news);
      const now = pointOf(database.queries);
      const to = again.length > 0 ? unsaid(news.to) : news.to;
      if (now.change_id === to.change_id && now.seq === to.seq) break;
      at = now;
    }
    const calls = new RoundCalls(this.#deps.member.host_id);
    for (;;) {
      const { rows, tried } = this.#rehearse(batch, calls, again);
      if (!(await calls.note(run))) continue;
      const before = pointOf(database.queries);
      const isChange = rows.length > 0 || calls.hasAny;
      return { point: isChange ? { seq: before.seq + 1, change_id } : before, rows, isChange, again, tried };
    }
  }

  #rehearse(batch: readonly Change[], calls: RoundCalls, again: readonly SharedRow[]): Pick<Round, "rows" | "tried"> {
    const { database, shared } = this.#deps;
    const rows = new Map<string, SharedRow>(again.map((row) => [`${row.tbl} ${row.key}`, row]));
    let changed: () => SharedRow[] = () => [];
    const works = batch.map(({ work }) => (queries: Queries) => {
      changed = shared.try();
      calls.beginChange();
      return work(queries);
    });
    calls.beginTrial();
    this.#calls = calls;
    const tried = database.rehearse(works, () => {
      for (const row of changed()) rows.set(`${row.tbl} ${row.key}`, row);
      calls.endChange();
    });
    this.#calls = null;
    return { rows: [...rows.values()], tried };
  }

  /** Whether a round whose end is not known has come true. Its lock is waited for, so the answer is the last word. */
  async #isTrue(error: unknown, change_id: string): Promise<boolean> {
    if (!(error instanceof DirectoryAway && error.ambiguous)) return false;
    try {
      return await this.#deps.connections.transaction(async (run) => {
        await run("SELECT FROM roomd.cluster FOR UPDATE");
        const { rows } = await run("SELECT FROM roomd.changes WHERE change_id = $1", [change_id]);
        return rows.length > 0;
      }, ROUND_MS);
    } catch {
      // Whoever asked is told that nobody knows; should it turn out to be true, that is recorded.
      this.#unknown.add(change_id);
      return false;
    }
  }

  /** Returns rows that the directory has lost: the next round inserts them. */
  async #bring(from: Point, news: News): Promise<NumberedRow[]> {
    const { database, shared, log } = this.#deps;
    if (news.isWhole)
      log.warn("the directory knows another past than this host: its copy is made anew", {
        from: from.seq,
        to: news.to.seq,
      });
    const { recovered } = this.#deps;
    const lost = news.own.filter(({ change_id }) => this.#isFirst || this.#unknown.has(change_id));
    const first = (queries: Queries) => {
      for (const change of lost) recovered?.(queries, recoveredOf(shared, change, news.rows));
    };
    const kept = news.isWhole ? withOneWay(shared, news.rows) : { rows: news.rows, again: [] };
    const again = this.#isRefused ? [] : kept.again;
    const to = again.length > 0 ? unsaid(news.to) : news.to;
    const work = bringing(shared, from, { ...news, rows: kept.rows, to }, first);
    if (work) await database.commit(work);
    this.#tell();
    this.#isFirst = false;
    for (const { change_id } of lost) this.#unknown.delete(change_id);
    return again;
  }

  /** The rows, and what of each change is this host's alone: all in one commit, where each can fail by itself. */
  async #finish(batch: readonly Change[], { point, rows, isChange, again, tried }: Round): Promise<void> {
    const { database, shared, log } = this.#deps;
    const record = (queries: Queries) => {
      if (again.length === 0) return;
      const numbered = again.map((row) => ({ ...row, seq: point.seq }));
      this.#deps.putAgain?.(queries, recoveredOf(shared, point, numbered));
    };
    const work = bringing(shared, pointOf(database.queries), { to: point, rows, isWhole: false }, record);
    const steps = tried.map((outcome) => ("error" in outcome ? [] : outcome.steps));
    const isNeeded = work !== null || steps.some((each) => each.length > 0);
    const works = [work ?? (() => {}), ...steps.map((each) => (queries: Queries) => runAll(each, queries))];
    const isVital = batch.some(({ vital }) => vital);
    const [brought, ...ran] = isNeeded ? await database.commitTogether(works, isVital) : [];
    if (brought?.status === "rejected") {
      // Rows that failed to apply are in the directory: the next round or pull applies them, and records the change.
      if (isChange) this.#unknown.add(point.change_id);
      log.error("a change not brought", { error: describeError(brought.reason) });
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

  /** Also of news that an operator's command beside this daemon has brought; the first time in any case. */
  #tell(): void {
    const { change_id } = pointOf(this.#deps.database.queries);
    if (this.#told === change_id) return;
    this.#told = change_id;
    this.#deps.onNews();
  }

  #unavailable(error: unknown): unknown {
    if (!(error instanceof DirectoryAway)) return error;
    const isUnknown = error.ambiguous ? " Whether it was done is not known." : "";
    // Where the database is, and what it said, is the operator's to know: the log has it.
    return new ServiceError("cluster_unavailable", {
      detail: `The database that hosts share does not answer (${error.reason}).${isUnknown}`,
      cause: error,
    });
  }
}

/** Writes what a change comes to, and that it is the last one. Within the transaction that has the lock. */
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
