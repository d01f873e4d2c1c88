/**
 * Owns the package `postgres` as its manual has it: a pool of its own, `begin` for transactions, `listen`, and beside it a timer,
 * since it has none. What a call past its deadline has of the pool cannot be taken back one by one.
 */
import postgres from "postgres";
import type { Address } from "../../daemon/cluster/address.ts";
import type { Run } from "../../daemon/cluster/connections.ts";
import type { Client } from "./postgres-said.ts";

export class ByBegin implements Client {
  readonly #sql: postgres.Sql;

  constructor({ tls, ...where }: Address) {
    this.#sql = postgres({
      ...where,
      max: 4,
      connect_timeout: 2,
      fetch_types: false,
      onnotice: () => {},
      ssl: tls === null ? false : { rejectUnauthorized: tls.proven, ...(tls.authority && { ca: tls.authority }) },
    });
  }

  async transaction<T>(work: (run: Run) => Promise<T>, deadlineMs: number): Promise<T> {
    let isDone = false;
    const { promise: passed, reject } = Promise.withResolvers<never>();
    passed.catch(() => {});
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      reject(new Error("timeout"));
    }, deadlineMs);
    try {
      const begun = this.#sql.begin(async (sql) => {
        await sql.unsafe(
          `SET LOCAL statement_timeout = ${deadlineMs}; SET LOCAL idle_in_transaction_session_timeout = ${deadlineMs}`,
        );
        const value = await work(async (text, values = []) => {
          const answer = await sql.unsafe(text, [...values] as never[]);
          return { rows: [...answer], command: answer.command };
        });
        isDone = true;
        return value;
      });
      return (await Promise.race([begun, passed])) as T;
    } catch (error) {
      // What has passed its deadline still waits in the pool, and may be done later.
      throw Object.assign(error as Error, { ambiguous: isDone || isOver });
    } finally {
      clearTimeout(timer);
    }
  }

  listen(channel: string, onHint: () => void, onChange: (isListening: boolean) => void): void {
    void this.#sql.listen(channel, onHint, () => {
      onChange(true);
      onHint();
    });
  }

  close(): void {
    void this.#sql.end({ timeout: 0 });
  }
}
