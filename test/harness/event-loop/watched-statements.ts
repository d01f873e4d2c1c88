/** A counter of the runs and rows of the test's own statements, among those prepared while it watches. */
import { Database } from "bun:sqlite";
import { vi } from "vitest";

interface Watched extends Disposable {
  /** Each time that one was run, and how many rows it returned. */
  runs: { sql: string; rows: number }[];
}

/** Watches the statements with matching SQL. */
export function watchStatements(matching: RegExp): Watched {
  const prototype = Database.prototype as unknown as Record<string, (sql: string) => Record<string, unknown>>;
  const seen = new WeakSet<object>();
  const watched: Pick<Watched, "runs"> = { runs: [] };
  const spies = (["query", "prepare"] as const).map((name) => {
    const original = prototype[name] as (this: unknown, sql: string) => Record<string, unknown>;
    return vi.spyOn(prototype, name).mockImplementation(function (this: unknown, sql: string) {
      const statement = original.call(this, sql);
      if (seen.has(statement) || !matching.test(sql)) return statement;
      seen.add(statement);
      for (const method of ["all", "values", "get"]) {
        const run = statement[method] as (...values: unknown[]) => unknown;
        statement[method] = (...values: unknown[]) => {
          const result = run.apply(statement, values);
          watched.runs.push({ sql, rows: Array.isArray(result) ? result.length : 0 });
          return result;
        };
      }
      return statement;
    });
  });
  return Object.assign(watched, { [Symbol.dispose]: () => spies.forEach((spy) => void spy.mockRestore()) });
}
