/**
 * PostgreSQL as the daemon's statements see it: committed states that never change, transactions at READ COMMITTED over them, locks of rows,
 * timeouts of sessions, notifications. The statements are in statements.ts; a test compares them with a server.
 */
import type { QueryResult } from "../../../daemon/cluster/session.ts";
import { ServerError, type State, Transaction, View } from "./state.ts";
import { type Steps, statementOf } from "./statements.ts";
import type { World } from "./world.ts";

/** A statement as it was carried out, for a comparison with a server. */
export interface Recorded {
  session: number;
  text: string;
  values: readonly unknown[];
  /** Beginning of its transaction. */
  nowMs: number;
  /** Whether it waited for a lock: its snapshot is of before. */
  waited: boolean;
  /** Null: the session has ended without an answer. */
  answer: QueryResult | { code: string } | null;
}

interface Waiting {
  session: ServerSession;
  lock: string;
  go(): void;
}

export class PostgresModel {
  readonly #world: World;
  state: State;
  /** Committed states, the oldest first. */
  readonly history: { at: number; state: State }[] = [];
  isDown = false;
  /** Called with each state once it is committed, the process of the client and the beginning of its transaction. */
  onCommit: (state: State, by: string, startedAtMs: number) => void = () => {};
  /** Fault of a COMMIT: it is lost before it is done, or its answer is. */
  commitFault: () => "before" | "after" | null = () => null;
  readonly sessions = new Set<ServerSession>();
  /** All that was carried out, in this order; null: it is not kept. */
  recorded: Recorded[] | null = null;
  sessionCount = 0;
  readonly #holders = new Map<string, ServerSession>();
  #waiting: Waiting[] = [];

  constructor(world: World, state: State) {
    this.#world = world;
    this.state = state;
    this.history.push({ at: 0, state });
  }

  get wallMs(): number {
    return this.#world.wallMs;
  }

  /** Becomes a server with another state, such as a standby that was behind, or a backup. */
  becomes(state: State): void {
    this.endSessions("57P01");
    this.state = state;
    this.history.push({ at: this.#world.now, state });
  }

  /** Committed state at a moment. */
  stateAt(at: number): State {
    return (this.history.findLast((each) => each.at <= at) ?? (this.history[0] as { state: State })).state;
  }

  endSessions(code: string): void {
    for (const session of [...this.sessions]) session.end(new ServerError("FATAL", code, "the session is terminated"));
  }

  commit(transaction: Transaction, by: string): void {
    if (transaction.hasWritten) {
      this.state = transaction.over(this.state);
      this.history.push({ at: this.#world.now, state: this.state });
      this.onCommit(this.state, by, transaction.startedAtMs);
    }
    const { notifies } = transaction;
    if (notifies !== null) for (const session of this.sessions) session.notify(notifies);
  }

  /** Calls `go` once the session has the lock, within its transaction. */
  lock(session: ServerSession, lock: string, go: () => void): void {
    const holder = this.#holders.get(lock);
    if (holder === undefined || holder === session) {
      this.#holders.set(lock, session);
      go();
      return;
    }
    session.hasWaited = true;
    this.#waiting.push({ session, lock, go });
  }

  unlock(session: ServerSession): void {
    this.#waiting = this.#waiting.filter((each) => each.session !== session);
    for (const [lock, holder] of [...this.#holders]) {
      if (holder !== session) continue;
      this.#holders.delete(lock);
      const next = this.#waiting.find((each) => each.lock === lock);
      if (!next) continue;
      this.#waiting = this.#waiting.filter((each) => each !== next);
      this.#holders.set(lock, next.session);
      this.#world.after(0, null, next.go);
    }
  }
}

export interface SessionEvents {
  notified(channel: string): void;
  over(error: unknown): void;
}

/** A session on the server's side. Its answers go by callbacks: the network is between. */
export class ServerSession {
  readonly #world: World;
  readonly #server: PostgresModel;
  readonly #events: SessionEvents;
  readonly #number: number;
  /** Process of the client. */
  readonly #client: string;
  readonly #listens = new Set<string>();
  #transaction: Transaction | null = null;
  /** Whether its last statement waited for a lock. */
  hasWaited = false;
  #isOver = false;
  #statementMs = 0;
  #idleMs = 0;
  #stopIdle: () => void = () => {};

  constructor(world: World, server: PostgresModel, events: SessionEvents, client = "") {
    this.#world = world;
    this.#server = server;
    this.#events = events;
    this.#client = client;
    this.#number = server.sessionCount++;
    server.sessions.add(this);
  }

  notify(channel: string): void {
    if (this.#listens.has(channel)) this.#events.notified(channel);
  }

  /** Ends it; `error` is the answer to the client; null: the client has ended it. */
  end(error: ServerError | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopIdle();
    if (this.#transaction) this.#record("ROLLBACK", [], null);
    this.#forget();
    this.#server.sessions.delete(this);
    if (error) this.#events.over(error);
  }

  run(text: string, values: readonly unknown[], answered: (answer: QueryResult | Error) => void): void {
    if (this.#isOver) return;
    this.#stopIdle();
    this.hasWaited = false;
    const done = (answer: QueryResult | Error) => {
      if (this.#isOver) return;
      this.#record(text, values, answer);
      if (this.#transaction && this.#idleMs > 0) {
        const idle = () => this.end(new ServerError("FATAL", "25P03", "idle in a transaction for too long"));
        this.#stopIdle = this.#world.after(this.#idleMs, null, idle);
      }
      answered(answer);
    };
    const sql = text.replace(/\s+/g, " ").trim();
    const [command = ""] = /^\w+/.exec(sql) ?? [];
    if (command === "BEGIN") this.#begin(sql, done);
    else if (command === "COMMIT") this.#commit(done);
    else if (command === "ROLLBACK") this.#rollback(done);
    else if (command === "LISTEN") this.#listen(sql, done);
    else this.#statement(sql, values, done);
  }

  #rollback(done: (answer: QueryResult) => void): void {
    this.#transaction = null;
    done({ command: "ROLLBACK", rows: [] });
    this.#forget();
  }

  #listen(sql: string, done: (answer: QueryResult) => void): void {
    this.#listens.add(/"(.*)"/.exec(sql)?.[1] ?? "");
    done({ command: "LISTEN", rows: [] });
  }

  #record(text: string, values: readonly unknown[], answer: QueryResult | Error | null): void {
    const nowMs = this.#transaction?.startedAtMs ?? this.#server.wallMs;
    const result = answer instanceof Error ? { code: (answer as ServerError).code } : answer;
    this.#server.recorded?.push({ session: this.#number, text, values, nowMs, waited: this.hasWaited, answer: result });
  }

  #begin(sql: string, done: (answer: QueryResult) => void): void {
    const setting = (name: string) => Number(new RegExp(`SET LOCAL ${name} = (\\d+)`).exec(sql)?.[1] ?? 0);
    this.#statementMs = setting("statement_timeout");
    this.#idleMs = setting("idle_in_transaction_session_timeout");
    this.#transaction = new Transaction(this.#server.wallMs);
    done({ command: "SELECT", rows: [] });
  }

  #commit(done: (answer: QueryResult) => void): void {
    const transaction = this.#transaction;
    const end = () => this.end(new ServerError("FATAL", "57P01", "the session is terminated"));
    const fault = transaction?.hasWritten ? this.#server.commitFault() : null;
    if (fault !== "before" && transaction && !transaction.hasFailed) this.#server.commit(transaction, this.#client);
    if (fault !== null) {
      this.#record(fault === "before" ? "ROLLBACK" : "COMMIT", [], null);
      this.#transaction = null;
      end();
      return;
    }
    this.#transaction = null;
    done({ command: transaction?.hasFailed ? "ROLLBACK" : "COMMIT", rows: [] });
    this.#forget();
  }

  #statement(sql: string, values: readonly unknown[], done: (answer: QueryResult | Error) => void): void {
    const transaction = this.#transaction ?? new Transaction(this.#server.wallMs);
    if (transaction.hasFailed) {
      done(new ServerError("ERROR", "25P02", "the transaction is aborted"));
      return;
    }
    let isDone = false;
    let stopTimeout = () => {};
    const finish = (answer: QueryResult | Error) => {
      if (isDone) return;
      isDone = true;
      stopTimeout();
      if (answer instanceof Error) transaction.hasFailed = true;
      else if (!this.#transaction) this.#server.commit(transaction, this.#client);
      if (!this.#transaction) this.#server.unlock(this);
      done(answer);
    };
    let steps: Steps;
    const go = () => {
      if (isDone || this.#isOver) return;
      try {
        const { done: isLast, value } = steps.next();
        if (isLast) finish(value);
        else this.#server.lock(this, value, go);
      } catch (error) {
        finish(error as Error);
      }
    };
    try {
      const outcome = statementOf(sql)(new View(this.#server, transaction), values, sql);
      if (!("next" in outcome)) {
        finish(outcome);
        return;
      }
      steps = outcome;
    } catch (error) {
      finish(error as Error);
      return;
    }
    if (this.#statementMs > 0 && this.#transaction) {
      const late = () => finish(new ServerError("ERROR", "57014", "canceling statement due to statement timeout"));
      stopTimeout = this.#world.after(this.#statementMs, null, late);
    }
    go();
  }

  #forget(): void {
    this.#transaction = null;
    this.#server.unlock(this);
  }
}
