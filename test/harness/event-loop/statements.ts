/**
 * A log of the SQL statements of a daemon's requests: preloaded into a daemon that runs from its sources, it writes a line to the file of
 * ROOMD_TEST_STATEMENTS for every statement that a request has run, with the request's X-Request-Id and the number of rows. Statements run
 * by timers belong to no request.
 */

import { Database } from "bun:sqlite";
import { AsyncLocalStorage } from "node:async_hooks";
import { appendFileSync } from "node:fs";

export const STATEMENTS_VARIABLE = "ROOMD_TEST_STATEMENTS";

/** One statement as a request has run it. */
export interface RunStatement {
  request_id: string;
  sql: string;
  rows: number;
}

type Anything = Record<string, (this: object, ...args: unknown[]) => unknown>;

const file = process.env[STATEMENTS_VARIABLE];
if (file !== undefined) record(file);

function record(file: string): void {
  const request = new AsyncLocalStorage<string>();
  const wrapped = new WeakSet<object>();
  const note = (sql: string, result: unknown) => {
    const request_id = request.getStore();
    // A commit is retried if another thread is writing.
    if (request_id === undefined || sql.startsWith("PRAGMA busy_timeout")) return;
    const line: RunStatement = { request_id, sql, rows: rowsIn(result) };
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  };

  wrap(Database.prototype, ["run"], (result, [sql]) => note(String(sql), result));
  wrap(Database.prototype, ["query", "prepare"], (statement, [sql]) => {
    if (typeof statement !== "object" || statement === null || wrapped.has(statement)) return;
    wrapped.add(statement);
    // Each has its own, by the number of its placeholders.
    wrap(statement, ["all", "get", "values", "run"], (result) => note(String(sql), result));
  });

  const { serve } = Bun;
  Bun.serve = ((options: { fetch: (incoming: Request, server: unknown) => unknown }) =>
    serve({
      ...options,
      fetch(incoming: Request, server: unknown) {
        const id = incoming.headers.get("x-request-id");
        return id === null ? options.fetch(incoming, server) : request.run(id, () => options.fetch(incoming, server));
      },
    } as never)) as typeof serve;
  for (const name of ["setTimeout", "setInterval"] as const) {
    const set = globalThis[name] as (...args: unknown[]) => unknown;
    globalThis[name] = ((...args: unknown[]) => request.exit(() => set(...args))) as never;
  }
}

function rowsIn(result: unknown): number {
  if (Array.isArray(result)) return result.length;
  if (typeof result !== "object" || result === null) return 0;
  return "changes" in result ? Number(result.changes) : 1;
}

function wrap(owner: object, names: readonly string[], then: (result: unknown, args: unknown[]) => void): void {
  const methods = owner as Anything;
  for (const name of names) {
    const method = methods[name];
    if (!method) throw new Error(`bun:sqlite has no ${name} any more`);
    methods[name] = function (...args) {
      const result = method.apply(this, args);
      then(result, args);
      return result;
    };
  }
}
