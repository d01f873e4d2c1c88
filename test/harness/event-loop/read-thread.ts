/** A reader thread with reads for tests: of a table `t (n INTEGER PRIMARY KEY, text TEXT)`, of the thread's end and of stalls. */
import { sql } from "drizzle-orm";
import type { Lines, Read, Step } from "../../../daemon/db/readers/read.ts";
import { serveReads } from "../../../daemon/db/readers/serve.ts";

/** A fault of the thread after `at` rows, `times` times. */
export interface Misfortune {
  is: "exit" | "throw" | "stall" | "fail";
  at: number;
  /** Shared with the test. */
  times: Int32Array;
}

export interface RowsInput {
  after: number;
  misfortune?: Misfortune;
}

/** All rows as lines, one a step. */
export const rowsOfT: Read<RowsInput, Lines> = {
  name: "test.rows",
  isOfRecords: true,
  *run(queries, { after, ...rest }): Generator<Step<RowsInput>, void> {
    for (let last = after; ; ) {
      const [row] = queries.all<{ n: number; text: string }>(sql`SELECT * FROM t WHERE n > ${last} ORDER BY n LIMIT 1`);
      if (!row) return;
      befall(rest.misfortune, row.n);
      last = row.n;
      yield { text: `${JSON.stringify(row)}\n`, rest: { ...rest, after: last } };
    }
  },
};

export const countOfT: Read<{ misfortune?: Misfortune }, { count: number }> = {
  name: "test.count",
  isOfRecords: true,
  *run(queries, { misfortune }) {
    const [row] = queries.all<{ count: number }>(sql`SELECT count(*) AS count FROM t`);
    befall(misfortune, Number.POSITIVE_INFINITY);
    yield JSON.stringify(row);
  },
};

/** Steps of some milliseconds, as many as there are. */
export const longOfT: Read<{ steps: number }, number> = {
  name: "test.long",
  isOfRecords: true,
  *run(_queries, { steps }) {
    for (let step = 0; step < steps; step++) {
      const until = performance.now() + 5;
      while (performance.now() < until);
      yield;
    }
    yield String(steps);
  },
};

function befall(misfortune: Misfortune | undefined, n: number): void {
  if (!misfortune || n < misfortune.at || Atomics.load(misfortune.times, 0) === 0) return;
  Atomics.sub(misfortune.times, 0, 1);
  if (misfortune.is === "exit") process.exit(1);
  if (misfortune.is === "fail") throw new Error("as a test asked for");
  if (misfortune.is === "throw") {
    setTimeout(() => {
      throw new Error("as a test asked for");
    });
    // The thread ends before its next part.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  }
  if (misfortune.is === "stall") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
}

// It is imported by tests too.
if (!Bun.isMainThread) serveReads([rowsOfT, countOfT, longOfT]);
