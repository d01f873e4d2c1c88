/** What is asked about the whole host reads what is there now, and not all that ever was: at every scrape, create and comparison. */
import { Database, type SQLQueryBindings } from "bun:sqlite";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { expect, test } from "vitest";
import type { Queries } from "../../../../daemon/db/client.ts";
import { MIGRATIONS } from "../../../../daemon/db/migrate.ts";
import { countAllRooms } from "../../../../daemon/domain/rooms/index.ts";
import * as sandboxes from "../../../../daemon/domain/sandboxes/store.ts";
import { newId } from "../../../../shared/ids.ts";

const questions: [string, (queries: Queries) => unknown][] = [
  ["countStates", sandboxes.countStates],
  ["memoryPromised", sandboxes.memoryPromised],
  ["undestroyed", sandboxes.undestroyed],
  ["unfinished", sandboxes.unfinished],
  ["heldCids", sandboxes.heldCids],
  ["orgCids", (queries) => sandboxes.orgCids(queries, newId("org"))],
  ["countAllRooms", countAllRooms],
];

test.each(questions)("%s goes by an index of that", (_, ask) => {
  const database = new Database(":memory:");
  for (const statements of MIGRATIONS) database.run(statements);
  const partial = database
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'")
    .all();
  const asked: { sql: string; values: unknown[] }[] = [];
  ask(drizzle(database, { logger: { logQuery: (sql, values) => asked.push({ sql, values }) } }));
  expect(asked.length).toBe(1);
  for (const { sql, values } of asked) {
    const steps = database
      .query<{ detail: string }, SQLQueryBindings[]>(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...(values as SQLQueryBindings[]));
    const [index] = steps.map(({ detail }) => / INDEX (\w+)/.exec(detail)?.[1]);
    expect(
      partial.map(({ name }) => name),
      steps.map(({ detail }) => detail).join(),
    ).toContain(index);
  }
});
