/**
 * Scheduler of the event loop: start-time fair queueing (Goyal, Vin, Cheng 1996) by measured time.
 *
 * A piece is one callback of the event loop with its microtasks, up to the next callback that names an owner. Each account has a finish tag
 * in virtual time; a piece advances the tag by its duration, and the account with the lowest tag runs next. The tag of an idle account is
 * raised to the virtual time less a small credit, so that it cannot save up time.
 *
 *   enter ─▶ empty queue, time left in the turn ─▶ starts immediately
 *        └─▶ otherwise queued: account ─▶ network ─▶ key, sandbox or connection, in order of arrival
 *
 * A turn starts at most 16 queued pieces, and none 2 ms after the first: turns of 1 ms cost a fifth of the throughput of 64 connections,
 * and longer turns noticeably delay other work. Each piece has its own macrotask, except that an account with short pieces starts up to 4
 * in one: polling the sockets after each would cost more than the pieces.
 */
import { FairQueue } from "../concurrency/fair-queue.ts";
import { accountOf, type OwnerName } from "./owner.ts";

export interface LoopTimeDeps {
  /** Monotonic time in milliseconds. */
  now(): number;
  /** Calls back in the next turn of the event loop. */
  defer(callback: () => void): void;
  /** Calls back after `ms`. */
  after(ms: number, callback: () => void): void;
  /** Processor time of this thread in milliseconds, for pieces that seem long. */
  cpu(): number;
}

/** A reported piece: `ms` is elapsed time, `cpuMs` an upper bound of the thread's processor time, measured for long pieces only. */
export interface Piece {
  owner: OwnerName;
  /** Operation, or kind of work. */
  label: string;
  ms: number;
  cpuMs: number | null;
  /** Time in the queue. */
  waitedMs: number;
}

/** Observer of the running piece; times are of the scheduler's clock. */
export interface Display {
  /** `account` is `org:ID`, `net` or `host`. */
  start(now: number, account: string, label: string): void;
  end(): void;
}

/** Time of a turn in which queued pieces may start. */
const START_MS = 2;
/** Time of a turn in which work starts immediately if the queue is empty: about 45 refused requests. */
const FREE_MS = 3;
const MAX_STARTS = 16;
const MAX_TOGETHER = 4;
/** Pieces of an account start together if their average duration is shorter; a piece of over 1 ms disables this for a second. */
const SHORT_MS = 0.15;
const LONG_MS = 1;
const LONG_REMEMBERED_MS = 1_000;
/** Credit of an idle account. A larger credit would let many accounts overtake each other. */
const CREDIT_MS = 1;
/** No piece may take longer. An account has 5 % of the time for longer pieces, and 250 ms in advance: above that, it pauses. */
const OVERRUN_MS = 20;
const OVERRUN_SHARE = 0.05;
const OVERRUN_BURST_MS = 250;
const MAX_PAUSE_MS = 2_000;
/** Weight of a new piece in an account's average. */
const SMOOTHING = 1 / 8;
/** The account shared by all networks. */
const NETWORKS = accountOf("net:");
/** Share of an authenticated request's first turn that the networks' account pays: a flood of such requests leaves time to other work. */
const KNOWN_SHARE = 1 / 4;
/** Idle accounts above this number are dropped: their tags have no effect. */
const MAX_ACCOUNTS = 1_024;
/** Maximum lead of a tag over the virtual time, caused by callbacks that cannot be delayed. */
const MAX_LEAD_MS = 2_000;
/** Maximum age of the processor time reading at the start of a piece. */
const CPU_READ_EVERY_MS = 5;

interface Turn {
  owner: OwnerName;
  label: string;
  within: string;
  queuedAt: number;
  start(): void;
}

class Account {
  readonly name: string;
  /** Milliseconds since the start. */
  used = 0;
  /** Virtual time at the end of the account's last piece. */
  tag = 0;
  /** Average duration of pieces in milliseconds; assumed long until measured. */
  average = LONG_MS;
  lastLongAt = Number.NEGATIVE_INFINITY;
  pausedUntil = Number.NEGATIVE_INFINITY;
  readonly #overrun = { ms: 0, at: 0 };
  /** Networks take turns, and within each its connections; an organization counts as one network. */
  readonly #owners = new FairQueue<Turn>();
  readonly #within = new Map<OwnerName, FairQueue<Turn>>();
  waiting = 0;

  constructor(name: string, used: number) {
    this.name = name;
    this.used = used;
  }

  add(turn: Turn): void {
    const own = this.#within.get(turn.owner) ?? new FairQueue<Turn>();
    this.#within.set(turn.owner, own);
    own.add(turn.within, turn);
    this.#owners.add(turn.owner, turn);
    this.waiting++;
  }

  /** Pauses the account once its long pieces exceed their share of the time. */
  overran(ms: number, now: number): void {
    const earned = (now - this.#overrun.at) * OVERRUN_SHARE;
    this.#overrun.ms = Math.max(0, this.#overrun.ms - earned) + ms;
    this.#overrun.at = now;
    const beyond = this.#overrun.ms - OVERRUN_BURST_MS;
    if (beyond > 0) this.pausedUntil = now + Math.min(beyond / OVERRUN_SHARE, MAX_PAUSE_MS);
  }

  take(): Turn | undefined {
    const next = this.#owners.take();
    const own = next && this.#within.get(next.owner);
    const turn = own?.take();
    if (!turn) return undefined;
    if (own?.isEmpty) this.#within.delete(turn.owner);
    this.waiting--;
    return turn;
  }
}

export class LoopTime {
  readonly #deps: LoopTimeDeps;
  #readCpu: () => number;
  readonly #accounts = new Map<string, Account>();
  /** Accounts with queued pieces. */
  readonly #queued = new Set<Account>();
  /** Loop time used by accounts that were dropped. */
  readonly #usedBefore = new Map<string, number>();
  #virtual = 0;
  /** Queued pieces started in this macrotask; each may continue in another account without queueing. */
  #followers = 0;
  #current: { account: Account; owner: OwnerName; label: string; pieces: number; waitedMs: number } | null = null;
  #since = 0;
  #turnStartedAt = 0;
  /** Start of the turn's first queued piece. Callbacks that precede it take none of its time, else commits in each turn would stop pieces. */
  #startsSince: number | null = null;
  #isScheduled = false;
  /** Whether a timer runs until the earliest pause ends. */
  #isPausing = false;
  #cpu = { at: Number.NEGATIVE_INFINITY, read: 0 };
  #cpuReads = { everyMs: CPU_READ_EVERY_MS, aboveMs: OVERRUN_MS };
  readonly #observers: ((piece: Piece) => void)[] = [];
  #display: Display | null = null;

  constructor(deps: LoopTimeDeps) {
    this.#deps = deps;
    this.#readCpu = deps.cpu;
  }

  /**
   * Replaces the clock of the thread's processor time. `everyMs`: maximum age of its reading at the start of a piece. `aboveMs`: processor
   * time is measured for pieces with more elapsed time.
   */
  measureBy(cpu: () => number, reads = this.#cpuReads): void {
    this.#readCpu = cpu;
    this.#cpuReads = reads;
    this.#cpu = { at: this.#deps.now(), read: cpu() };
  }

  /** Milliseconds per account since the start: `org:ID`, `net` or `host`. */
  get used(): ReadonlyMap<string, number> {
    const used = [...this.#accounts.values()].filter((account) => account.used > 0);
    return new Map([...this.#usedBefore, ...used.map((account) => [account.name, account.used] as const)]);
  }

  /** Owner of the running piece; `host` between pieces. */
  get owner(): OwnerName {
    return this.#current?.owner ?? "host";
  }

  /**
   * For work that continues in a callback that cannot be delayed, such as a message of another thread or a timer: the returned function
   * starts that callback and charges it to the owner of the currently running piece. `label`: used if no piece runs, for work of the
   * service.
   */
  continuation(label: string): () => void {
    const { owner, label: ran } = this.#current ?? { owner: "host", label };
    return () => this.goesOn(owner, ran);
  }

  /** Milliseconds that the current piece of this owner has run; null if none runs. */
  ranFor(owner: OwnerName): number | null {
    return this.#current?.owner === owner ? this.#deps.now() - this.#since : null;
  }

  /** Replaces the label of the running piece, once its work is known; false if none of this owner with the label `from` is running. */
  relabel(owner: OwnerName, from: string, label: string): boolean {
    const piece = this.#current;
    if (piece?.owner !== owner || piece.label !== from) return false;
    piece.label = label;
    this.#display?.start(this.#since, piece.account.name, label);
    return true;
  }

  /** Number of queued pieces by kind of owner. */
  get waiting(): Record<"org" | "net" | "host", number> {
    const waiting = { org: 0, net: 0, host: 0 };
    for (const [name, account] of this.#accounts) {
      if (account.waiting > 0) waiting[name === "net" || name === "host" ? name : "org"] += account.waiting;
    }
    return waiting;
  }

  /** Reports each piece to `display` when it starts; null disables this. */
  show(display: Display | null): void {
    this.#display = display;
  }

  /** Calls `observe` at the end of each piece. */
  observe(observe: (piece: Piece) => void): void {
    this.#observers.push(observe);
  }

  /** Whether a piece is running; otherwise the running callback has named no owner. */
  get isInPiece(): boolean {
    return this.#current !== null;
  }

  /**
   * Starts a piece of the owner: null if it starts immediately, otherwise a promise that resolves when it may. `within` is a key, sandbox
   * or connection: those of one owner take turns, each in order of arrival.
   */
  enter(owner: OwnerName, label: string, within = ""): Promise<void> | null {
    const account = this.#account(owner);
    const network = this.#takeOver(account, owner);
    const turn = this.#enter(account, owner, label, within);
    // Other requests of this callback are charged to the network until their callers are known.
    if (turn && network) this.goesOn(network, "request");
    return turn;
  }

  /** Like `enter`, at the start of a callback: the running piece is other work. */
  arrive(owner: OwnerName, label: string, within = ""): Promise<void> | null {
    return this.#enter(this.#account(owner), owner, label, within);
  }

  #enter(account: Account, owner: OwnerName, label: string, within: string): Promise<void> | null {
    const isFree = this.#schedule() && this.#queued.size === 0;
    // A request that was queued for its first turn is not queued again in its organization's account, unless that account is ahead of
    // others.
    const follows = this.#followers > 0 && account.waiting === 0 && account.tag - this.#virtual <= CREDIT_MS;
    if ((!isFree && !follows) || account.pausedUntil > this.#deps.now())
      return this.#wait(account, owner, label, within);
    if (this.#followers > 0) this.#followers--;
    this.#start(account, owner, label);
    this.#virtual = Math.max(this.#virtual, account.tag);
    return null;
  }

  /** Like `enter`, but queued pieces and other callbacks run first. */
  next(owner: OwnerName, label: string, within = ""): Promise<void> {
    this.#schedule();
    return this.#wait(this.#account(owner), owner, label, within);
  }

  /** Charges the time from now on to this owner: when a callback that cannot be delayed starts, or work continues after an await. */
  goesOn(owner: OwnerName, label: string): void {
    this.#schedule();
    this.#start(this.#account(owner), owner, label);
  }

  /**
   * Charges the caller's account for the first turn of its request, which ran in the network's account until the caller was known.
   * Otherwise the requests of all organizations would share the time of one account, and each would wait for a piece of every busy
   * organization. Returns the network; null if no network's piece runs.
   */
  #takeOver(account: Account, owner: OwnerName): OwnerName | null {
    const piece = this.#current;
    if (piece?.account.name !== NETWORKS || account.name === NETWORKS) return null;
    const network = piece.owner;
    piece.account.tag += (this.#deps.now() - this.#since) * KNOWN_SHARE;
    if (account.waiting === 0) account.tag = Math.max(account.tag, this.#virtual - CREDIT_MS);
    piece.account = account;
    piece.owner = owner;
    return network;
  }

  #account(owner: OwnerName): Account {
    const name = accountOf(owner);
    const known = this.#accounts.get(name);
    if (known) return known;
    if (this.#accounts.size >= MAX_ACCOUNTS) this.#dropIdle();
    const account = new Account(name, this.#usedBefore.get(name) ?? 0);
    this.#accounts.set(name, account);
    return account;
  }

  /** Drops idle accounts with a tag below the virtual time less the credit: a new account would have the same effect. */
  #dropIdle(): void {
    const now = this.#deps.now();
    for (const [name, account] of this.#accounts) {
      const isIdle = account.waiting === 0 && account !== this.#current?.account;
      if (isIdle && account.tag <= this.#virtual - CREDIT_MS && account.pausedUntil <= now) {
        this.#usedBefore.set(name, account.used);
        this.#accounts.delete(name);
      }
    }
  }

  #wait(account: Account, owner: OwnerName, label: string, within: string): Promise<void> {
    return new Promise((start) => {
      if (account.waiting === 0) {
        account.tag = Math.max(account.tag, this.#virtual - CREDIT_MS);
        this.#queued.add(account);
      }
      account.add({ owner, label, within, queuedAt: this.#deps.now(), start });
    });
  }

  /** Schedules the end of the turn's last piece. Returns false if the turn's free time is used up. */
  #schedule(): boolean {
    const now = this.#deps.now();
    if (this.#isScheduled) return now - this.#turnStartedAt < FREE_MS;
    this.#isScheduled = true;
    this.#turnStartedAt = now;
    this.#deps.defer(this.#turn);
    return true;
  }

  /** Between turns: ends the last piece of the turn, and starts queued pieces. */
  readonly #turn = (): void => {
    this.#end();
    this.#followers = 0;
    this.#isScheduled = false;
    if (this.#queued.size === 0) return;
    const now = this.#deps.now();
    let earliest = Number.POSITIVE_INFINITY;
    for (const { pausedUntil } of this.#queued) earliest = Math.min(earliest, pausedUntil);
    if (earliest > now) {
      this.#resumeAfter(earliest - now);
      return;
    }
    this.#isScheduled = true;
    this.#turnStartedAt = now;
    this.#startsSince = null;
    let starts = 0;
    for (const { waiting } of this.#queued) starts = Math.min(MAX_STARTS, starts + waiting);
    for (let n = 0; n < starts; n++) this.#deps.defer(this.#startNext);
    this.#deps.defer(this.#turn);
  };

  #resumeAfter(ms: number): void {
    if (this.#isPausing) return;
    this.#isPausing = true;
    this.#deps.after(ms, () => {
      this.#isPausing = false;
      this.#schedule();
    });
  }

  readonly #startNext = (): void => {
    const now = this.#end();
    this.#followers = 0;
    this.#startsSince ??= now;
    if (now - this.#startsSince >= START_MS) return;
    const account = this.#lowest(now);
    if (!account) return;
    this.#virtual = Math.max(this.#virtual, account.tag);
    const isShort = account.average < SHORT_MS && now - account.lastLongAt > LONG_REMEMBERED_MS;
    for (let n = 0; n < (isShort ? MAX_TOGETHER : 1); n++) {
      const turn = account.take();
      if (!turn) break;
      this.#followers++;
      if (n === 0) this.#start(account, turn.owner, turn.label, now - turn.queuedAt);
      else if (this.#current) this.#current.pieces++;
      turn.start();
    }
    if (account.waiting === 0) this.#queued.delete(account);
  };

  #lowest(now: number): Account | null {
    let lowest: Account | null = null;
    for (const account of this.#queued) {
      if (account.pausedUntil <= now && (lowest === null || account.tag < lowest.tag)) lowest = account;
    }
    return lowest;
  }

  #start(account: Account, owner: OwnerName, label: string, waitedMs = 0): void {
    const now = this.#end();
    if (now - this.#cpu.at > this.#cpuReads.everyMs) this.#cpu = { at: now, read: this.#readCpu() };
    if (account.waiting === 0) account.tag = Math.max(account.tag, this.#virtual - CREDIT_MS);
    this.#current = { account, owner, label, pieces: 1, waitedMs };
    this.#since = now;
    this.#display?.start(now, account.name, label);
  }

  /** Charges and ends the current piece; returns the current time. */
  #end(): number {
    const now = this.#deps.now();
    const piece = this.#current;
    if (!piece) return now;
    this.#current = null;
    this.#display?.end();
    const ms = now - this.#since;
    const { account, owner, label, pieces, waitedMs } = piece;
    account.tag = Math.min(account.tag + ms, this.#virtual + MAX_LEAD_MS);
    account.average += (ms / pieces - account.average) * SMOOTHING;
    if (ms > LONG_MS) account.lastLongAt = now;
    account.used += ms;
    // On a busy host a piece is also long if the thread was descheduled: only processor time counts as overrun.
    const cpuMs = ms > this.#cpuReads.aboveMs ? this.#readCpu() - this.#cpu.read : null;
    if (cpuMs !== null && cpuMs > OVERRUN_MS && owner.startsWith("org:")) account.overran(cpuMs, now);
    for (const observe of this.#observers) observe({ owner, label, ms, cpuMs, waitedMs });
    return now;
  }
}
