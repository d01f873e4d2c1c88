/**
 * Connection pool for PostgreSQL: transactions with a deadline, and listening for hints. The protocol is in session.ts; the statements are
 * the callers'. No connection outlives its first fault: it is closed and never reused.
 *
 *   open ──▶ idle ──▶ in a transaction ──COMMIT or ROLLBACK was answered──▶ idle
 *     │                      │
 *     └──────────┬───────────┘ deadline, loss, an answer that the session is over
 *                ▼
 *             closed
 */
import { backoffMs } from "../../shared/backoff.ts";
import { monotonicMs, pause, startTimer, stopTimer } from "../core/clock.ts";
import { repeat } from "../core/concurrency/repeat.ts";
import type { Address } from "./address.ts";
import { Servers } from "./servers.ts";
import { type OpenSession, openSession, type QueryResult, type Session } from "./session.ts";
import { asUnavailable, DirectoryUnavailable, serverSaid } from "./unavailable.ts";

/** The oldest server version that supports all statements and settings used here. */
const OLDEST_VERSION = 140_000;
const MAX_CONNECTIONS = 4;
/** Interval of the heartbeat on a connection that only listens, and the timeout of its reply. */
const HEARTBEAT_MS = 5000;
/** The session of a vanished client ends on its own, and releases its locks. */
const GONE_CLIENT = "SET tcp_user_timeout = 20000; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;";
/** A role, database or pooler may have set a weaker level, so that acknowledged changes could be lost. A stricter setting is kept. */
const DURABLE = `SELECT set_config('synchronous_commit', 'on', true)
  WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')`;
const RETRY_MS = { first: 100, most: 2000 };

/** Server settings that decide whether acknowledged changes are durable. */
export interface ServerSettings {
  fsync: boolean;
  full_page_writes: boolean;
  /** Empty: commits do not wait for a standby. */
  synchronous_standby_names: string;
}

export type Run = (text: string, values?: readonly unknown[]) => Promise<QueryResult>;

export interface ConnectionsOptions {
  /** The servers' addresses; one server is the primary. */
  addresses: readonly Address[];
  most?: number;
  heartbeatMs?: number;
  /** How one connection is opened. */
  open?: OpenSession;
}

interface Connecting {
  deadline: Deadline;
  onHint: (() => void) | undefined;
  /** Aborted if another server was found first. */
  late: AbortSignal;
}

interface ListenOptions {
  channel: string;
  onHint: () => void;
  onChange: (isListening: boolean) => void;
  signal: AbortSignal;
}

export interface Listening {
  /** Ends it. */
  stop(): void;
}

export class Connections {
  readonly #servers: Servers;
  readonly #heartbeatMs: number;
  readonly #open: OpenSession;
  readonly #idle: Session[] = [];
  readonly #all = new Set<Session>();
  /** Callers that wait for a slot, the longest wait first. */
  readonly #waiting = new Set<() => void>();
  readonly #listening = new Set<Listening>();
  #places: number;
  #isClosed = false;
  #settings: ServerSettings | null = null;

  constructor({
    addresses,
    most = MAX_CONNECTIONS,
    heartbeatMs = HEARTBEAT_MS,
    open = openSession,
  }: ConnectionsOptions) {
    this.#servers = new Servers(addresses);
    this.#places = most;
    this.#heartbeatMs = heartbeatMs;
    this.#open = open;
  }

  /**
   * Does `work` in one transaction. Resolves after the server has confirmed the commit. Rejects within `deadlineMs` with DirectoryUnavailable, or
   * with the error of `work` or of a statement; then nothing was changed, unless the error is ambiguous.
   */
  async transaction<T>(work: (run: Run) => Promise<T>, deadlineMs: number): Promise<T> {
    const deadline = new Deadline(deadlineMs);
    try {
      await this.#takePlace(deadline);
      try {
        const session = await this.#begin(deadline);
        return await this.#finish(session, work, deadline);
      } finally {
        this.#leavePlace();
      }
    } finally {
      deadline.end();
    }
  }

  /**
   * Calls `onHint` on a notification of the channel, and whenever listening started: a hint may have been missed before. `onChange` is
   * called when listening has started or ended; a heartbeat detects a connection that died silently. Neither may throw.
   */
  listen(channel: string, onHint: () => void, onChange: (isListening: boolean) => void = () => {}): Listening {
    const stop = new AbortController();
    const listening = {
      stop: () => {
        this.#listening.delete(listening);
        stop.abort();
      },
    };
    this.#listening.add(listening);
    const keep = async () => {
      for (let attempt = 0; !stop.signal.aborted; attempt++) {
        const was = await this.#listenOnce({ channel, onHint, onChange, signal: stop.signal });
        if (was) attempt = -1;
        await pause(backoffMs(RETRY_MS, attempt), stop.signal);
      }
    };
    void keep();
    return listening;
  }

  /** Settings of the last connected server; null before the first connection. */
  get settings(): ServerSettings | null {
    return this.#settings;
  }

  /** Closes all connections; pending queries fail. */
  close(): void {
    this.#isClosed = true;
    for (const each of this.#listening) each.stop();
    for (const each of this.#all) each.discard();
  }

  /** Listens on the channel until the connection ends. Resolves to whether LISTEN had succeeded. */
  async #listenOnce({ channel, onHint, onChange, signal }: ListenOptions): Promise<boolean> {
    let session: Session | null = null;
    let isListening = false;
    const discard = () => session?.discard();
    signal.addEventListener("abort", discard);
    try {
      using deadline = new Deadline(this.#heartbeatMs);
      session = await this.#connect(deadline, onHint);
      await deadline.bound(session, session.run(`LISTEN "${channel.replaceAll('"', '""')}"`));
      signal.throwIfAborted();
      deadline.end();
      isListening = true;
      onChange(true);
      onHint();
      await this.#untilOver(session);
    } catch {
      // Reconnects, as after any other end.
    }
    signal.removeEventListener("abort", discard);
    discard();
    if (isListening) onChange(false);
    return isListening;
  }

  /** Resolves when the connection is over, or does not answer. */
  async #untilOver(session: Session): Promise<void> {
    const beat = async () => {
      using deadline = new Deadline(this.#heartbeatMs);
      await deadline.bound(session, session.run("SELECT 1")).catch(() => session.discard());
    };
    const end = repeat(this.#heartbeatMs, beat);
    await session.over;
    end();
  }

  /** A connection in a new transaction. An idle one may have died in the pool: then another is used, without loss. */
  async #begin(deadline: Deadline): Promise<Session> {
    for (;;) {
      const idle = this.#idle.pop();
      const session = idle ?? (await this.#connect(deadline));
      try {
        // After our timeout the server aborts the work too, so it holds no locks for long.
        const left = Math.max(1, Math.ceil(deadline.leftMs));
        const begin = `BEGIN; SET LOCAL statement_timeout = ${left}; SET LOCAL idle_in_transaction_session_timeout = ${left}; ${DURABLE}`;
        await deadline.bound(session, session.run(begin));
        return session;
      } catch (error) {
        session.discard();
        if (idle === undefined || deadline.isOver) throw asUnavailable(error);
      }
    }
  }

  async #finish<T>(session: Session, work: (run: Run) => Promise<T>, deadline: Deadline): Promise<T> {
    let isOpen = true;
    const run: Run = async (text, values) => {
      // The connection may already be used by another transaction.
      if (!isOpen) throw new Error("the transaction is over");
      try {
        return await deadline.bound(session, session.run(text, values));
      } catch (error) {
        throw asUnavailable(error);
      }
    };
    let value: T;
    try {
      value = await deadline.bound(session, work(run));
    } catch (error) {
      isOpen = false;
      // The server may no longer be the primary: its connections are not kept.
      if (error instanceof DirectoryUnavailable) this.#servers.doubt();
      if (error instanceof DirectoryUnavailable && error.reason !== "timeout") session.discard();
      else await this.#undo(session, deadline);
      throw error;
    }
    isOpen = false;
    await this.#commit(session, deadline);
    this.#idle.push(session);
    return value;
  }

  async #commit(session: Session, deadline: Deadline): Promise<void> {
    const { warnings } = session;
    let command: string;
    try {
      ({ command } = await deadline.bound(session, session.run("COMMIT")));
    } catch (error) {
      session.discard();
      const away = asUnavailable(error);
      // A rejected COMMIT has no effect; any other error may have occurred after the commit.
      if (!(away instanceof DirectoryUnavailable) || serverSaid(error)?.severity === "ERROR") throw away;
      this.#servers.doubt();
      throw new DirectoryUnavailable(away.reason, away.message, { ambiguous: true, cause: error });
    }
    // The server answers ROLLBACK if a statement had failed and `work` did not pass the error on.
    if (command !== "COMMIT") {
      session.discard();
      throw new Error("the transaction was rolled back: a statement of it had failed");
    }
    // The server no longer waited for a standby: the change is committed, but lost if this server fails.
    if (session.warnings > warnings) {
      session.discard();
      throw new DirectoryUnavailable("terminated", "the server warned while it committed", { ambiguous: true });
    }
  }

  async #undo(session: Session, deadline: Deadline): Promise<void> {
    try {
      await deadline.bound(session, session.run("ROLLBACK"));
      this.#idle.push(session);
    } catch {
      session.discard();
    }
  }

  /** Opens a connection to a writable server. */
  async #connect(deadline: Deadline, onHint?: () => void): Promise<Session> {
    if (this.#isClosed) throw new DirectoryUnavailable("unreachable", "the connections are closed");
    return await this.#servers.find((address, late) => this.#connectTo(address, { deadline, onHint, late }));
  }

  async #connectTo(address: Address, { deadline, onHint, late }: Connecting): Promise<Session> {
    const { session, opened } = await this.#open({ address, onNotification: onHint });
    const giveUp = () => session.discard();
    late.addEventListener("abort", giveUp, { once: true });
    this.#all.add(session);
    void session.over.then(() => {
      this.#all.delete(session);
      const at = this.#idle.indexOf(session);
      if (at !== -1) this.#idle.splice(at, 1);
    });
    try {
      if (late.aborted) giveUp();
      await deadline.bound(session, opened);
      this.#settings = await deadline.bound(session, checkServer(session));
      return session;
    } catch (error) {
      session.discard();
      throw asUnavailable(error);
    } finally {
      late.removeEventListener("abort", giveUp);
    }
  }

  async #takePlace(deadline: Deadline): Promise<void> {
    if (this.#places > 0) {
      this.#places--;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    try {
      await deadline.bound(null, promise);
    } catch (error) {
      // The slot may have been granted at the same moment.
      if (!this.#waiting.delete(resolve)) this.#leavePlace();
      throw error;
    }
  }

  #leavePlace(): void {
    const [enter] = this.#waiting;
    if (enter === undefined) {
      this.#places++;
      return;
    }
    this.#waiting.delete(enter);
    enter();
  }
}

async function checkServer(session: Session): Promise<ServerSettings> {
  const { rows } = await session.run(
    `${GONE_CLIENT} SELECT pg_is_in_recovery() AS standby, current_setting('server_version_num')::int AS version,
       current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
       current_setting('synchronous_standby_names') AS synchronous_standby_names`,
  );
  const [{ standby, version, fsync, full_page_writes, synchronous_standby_names } = {}] = rows;
  if (Number(version) < OLDEST_VERSION) throw new DirectoryUnavailable("too_old", `the server's version is ${version}`);
  if (standby !== false) throw new DirectoryUnavailable("read_only", "the server is a standby");
  return {
    fsync: fsync !== "off",
    full_page_writes: full_page_writes !== "off",
    synchronous_standby_names: String(synchronous_standby_names ?? ""),
  };
}

/** One deadline for all waits of a call. When it passes, all of them are released, whatever their outcome. */
class Deadline implements Disposable {
  readonly #at: number;
  readonly #passed = Promise.withResolvers<never>();
  readonly #timer: Timer;
  readonly #ms: number;
  isOver = false;

  constructor(ms: number) {
    this.#ms = ms;
    this.#at = monotonicMs() + ms;
    // There may be no waiter then.
    this.#passed.promise.catch(() => {});
    this.#timer = startTimer(() => this.#pass(), ms);
  }

  get leftMs(): number {
    return this.#at - monotonicMs();
  }

  /** Awaits `promise` until the deadline; then closes the connection that it depends on. */
  async bound<T>(session: Session | null, promise: Promise<T>): Promise<T> {
    try {
      return await Promise.race([promise, this.#passed.promise]);
    } catch (error) {
      if (this.isOver) session?.discard();
      throw error;
    }
  }

  end(): void {
    stopTimer(this.#timer);
  }

  [Symbol.dispose](): void {
    this.end();
  }

  #pass(): void {
    this.isOver = true;
    this.#passed.reject(new DirectoryUnavailable("timeout", `the directory did not answer within ${this.#ms} ms`));
  }
}
