/** Reads of commands beside a daemon that closes a day between any two of their statements: each record is found once. */
import { Database } from "bun:sqlite";
import { cpSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { FAULT_VARIABLE } from "../../../../../daemon/core/fault-points.ts";
import { wholly } from "../../../../../daemon/core/loop/steps.ts";
import { openConnection, type Queries, stepsAtOneMoment } from "../../../../../daemon/db/client.ts";
import { lostAnchors } from "../../../../../daemon/domain/audit/anchors/anchored.ts";
import { verifyAll } from "../../../../../daemon/domain/audit/chain/verify-all.ts";
import { closedUpTo } from "../../../../../daemon/domain/audit/days/parts.ts";
import { nextNumber, recordFile, shorten } from "../../../../../daemon/domain/audit/days/store.ts";
import { listService } from "../../../../../daemon/domain/audit/reading/list.ts";
import { auditChains, chainHeads, recordsAbout } from "../../../../../daemon/domain/audit/store.ts";
import { Days } from "./days-fixture.ts";

const NAME = "2026-01-02.db";

/** A closed day, and a copied one without its row. */
async function halfClosed(): Promise<Days> {
  const days = new Days();
  await days.add(0, 30);
  await days.close();
  await days.add(1, 30);
  await days.database.close();
  const program = new URL("./close-process.ts", import.meta.url).pathname;
  const env = { ...process.env, [FAULT_VARIABLE]: "day.noted=kill@1" };
  await Bun.spawn(["bun", program, days.file, ""], { env, stderr: "ignore" }).exited;
  return days;
}

/** Moves the records of the day into its file, as the daemon's next commits do. */
function finish({ queries, connection, directory }: Days): void {
  const size_bytes = statSync(join(directory, NAME)).size;
  connection.execute("BEGIN IMMEDIATE");
  recordFile(queries, { number: nextNumber(queries), name: NAME, sha256: "0".repeat(64), size_bytes, last_at: "2026" });
  for (const key of auditChains(queries)) shorten(queries, key, closedUpTo(queries, key), 10_000);
  connection.execute("COMMIT");
}

/** Calls `before` ahead of each read of a statement that is prepared from now on, until it is disposed. */
function watchReads(before: () => void): Disposable {
  const watched = new WeakSet<object>();
  const spies = (["prepare", "query"] as const).map((way) => {
    const original = Database.prototype[way];
    return vi.spyOn(Database.prototype, way).mockImplementation(function (this: Database, ...given: [string]) {
      const statement = original.apply(this, given);
      if (watched.has(statement)) return statement;
      watched.add(statement);
      for (const method of ["all", "get", "values"] as const) {
        const read = statement[method] as (...values: unknown[]) => unknown;
        const value = (...values: unknown[]) => {
          before();
          return read.apply(statement, values);
        };
        Object.defineProperty(statement, method, { value });
      }
      return statement;
    });
  });
  return { [Symbol.dispose]: () => spies.forEach((spy) => void spy.mockRestore()) };
}

const anchorsOf = (queries: Queries) =>
  [...chainHeads(queries)].map(([key, head]) => ({ org_id: key === "" ? null : key, ...head }));

const READS: Record<string, (queries: Queries) => unknown> = {
  "audit list": async (queries) =>
    (await Promise.all((["asc", "desc"] as const).map((order) => listService(queries, { order, limit: 100 })))).map(
      ({ items }) => items.map(({ seq }) => seq),
    ),
  "audit verify": async (queries) => (await verifyAll(queries, [])).verdicts,
  "user export": (queries) =>
    wholly(stepsAtOneMoment(queries, recordsAbout(queries, "kid_1"))).map(({ audit_id }) => audit_id),
  "the comparison of anchors": async (queries) => {
    const anchors = anchorsOf(queries);
    return await lostAnchors(queries, { add: async () => {}, last: async () => anchors, after: async () => [] });
  },
};

test.each(Object.keys(READS))(
  "%s finds the same, wherever the day is closed",
  async (name) => {
    const read = READS[name] as (typeof READS)[string];
    await using half = await halfClosed();
    for (let nth = 1, count = 1; count >= nth; nth++) {
      await using days = new Days();
      await days.database.close();
      cpSync(half.home, days.home, { recursive: true });
      let before = () => {};
      using _ = watchReads(() => before());
      days.reconnect();
      const extra = openConnection(days.file, { alone: false });
      try {
        const expected = await read(extra.queries);
        count = 0;
        before = () => {
          if (++count !== nth) return;
          const original = before;
          before = () => {};
          finish(days);
          before = original;
        };
        expect(await read(extra.queries), `closed before read ${nth}`).toEqual(expected);
      } finally {
        before = () => {};
        extra.close();
      }
    }
  },
  60_000,
);
