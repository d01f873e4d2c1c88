/** State of the simulated PostgreSQL: committed states that never change, and the views and writes of transactions over them. */

export type Row = Readonly<Record<string, unknown>>;
export type Table = "cluster" | "changes" | "rows" | "leases" | "done_calls";
/** Committed rows by table and key. A commit makes another one. */
export type State = Readonly<Record<Table, ReadonlyMap<string, Row>>>;

/** Error of a server, as its driver throws it. */
export class ServerError extends Error {
  readonly severity: "ERROR" | "FATAL";
  readonly code: string;

  constructor(severity: "ERROR" | "FATAL", code: string, message: string) {
    super(message);
    this.severity = severity;
    this.code = code;
  }
}

/** View of a statement: the state when it began, and the writes of its transaction. */
export class View {
  readonly #server: { readonly state: State };
  readonly #snapshot: State;
  readonly transaction: Transaction;

  constructor(server: { readonly state: State }, transaction: Transaction) {
    this.#server = server;
    this.#snapshot = server.state;
    this.transaction = transaction;
  }

  get(table: Table, key: string): Row | undefined {
    const own = this.transaction.written(table, key);
    return own === undefined ? this.#snapshot[table].get(key) : (own ?? undefined);
  }

  /** The newest version of a row that was waited for. */
  newest(table: Table, key: string): Row | undefined {
    const own = this.transaction.written(table, key);
    return own === undefined ? this.#server.state[table].get(key) : (own ?? undefined);
  }

  all(table: Table): [string, Row][] {
    return [...this.transaction.over(this.#snapshot)[table]];
  }

  put(table: Table, key: string, row: Row | null): void {
    this.transaction.write(table, key, row);
  }
}

export class Transaction {
  readonly startedAtMs: number;
  readonly locks = new Set<string>();
  readonly #own: Record<Table, Map<string, Row | null>> = {
    cluster: new Map(),
    changes: new Map(),
    rows: new Map(),
    leases: new Map(),
    done_calls: new Map(),
  };
  hasFailed = false;
  notifies: string | null = null;

  constructor(startedAtMs: number) {
    this.startedAtMs = startedAtMs;
  }

  written(table: Table, key: string): Row | null | undefined {
    return this.#own[table].get(key);
  }

  write(table: Table, key: string, row: Row | null): void {
    this.#own[table].set(key, row);
  }

  get hasWritten(): boolean {
    return Object.values(this.#own).some((own) => own.size > 0);
  }

  over(state: State): State {
    const tables = Object.entries(this.#own).map(([table, own]) => {
      const rows = state[table as Table];
      if (own.size === 0) return [table, rows];
      const next = new Map(rows);
      for (const [key, row] of own) {
        if (row === null) next.delete(key);
        else next.set(key, row);
      }
      return [table, next];
    });
    return Object.fromEntries(tables) as State;
  }
}
