/** Reader threads: bytes in their order, nothing stale or unflushed, and the end of a thread during a read. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parsed } from "../../../daemon/core/call/operation.ts";
import type { Log } from "../../../daemon/core/log.ts";
import type { FromThread } from "../../../daemon/core/threads/messages.ts";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { makeLogSync } from "../../../daemon/db/log-sync.ts";
import { ReadPool, type ReadPoolOptions } from "../../../daemon/db/readers/pool.ts";
import { PART_CHARACTERS, type Read } from "../../../daemon/db/readers/read.ts";
import { type LocalDatabase, makeDatabase } from "../../../daemon/db/transact.ts";
import { countOfT, longOfT, type Misfortune, type RowsInput, rowsOfT } from "../../harness/event-loop/read-thread.ts";

const ROWS = 2_000;
const OWNER = "org:org_1";
let directory: string;
let file: string;
let connection: Connection;
let database: LocalDatabase;
let pool: ReadPool;
let warned: string[];
let started: number;
let partsSent: number;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-readers-"));
  file = join(directory, "roomd.db");
  connection = openConnection(file);
  connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)");
  connection.execute("BEGIN");
  for (let n = 1; n <= ROWS; n++) connection.queries.run(sql`INSERT INTO t VALUES (${n}, ${"ü".repeat(200)})`);
  connection.execute("COMMIT");
  database = makeDatabase(
    connection,
    () => false,
    makeLogSync(file, () => {}),
  );
  warned = [];
  started = 0;
  partsSent = 0;
});
afterEach(async () => {
  await pool.close();
  await database.close();
  rmSync(directory, { recursive: true });
});

async function opened(
  options: Partial<ReadPoolOptions> = {},
  source: ConstructorParameters<typeof ReadPool>[0] = database,
) {
  pool = new ReadPool(source, {
    file,
    count: 2,
    start: () => {
      started++;
      const worker = new Worker(new URL("../../harness/event-loop/read-thread.ts", import.meta.url).href);
      worker.addEventListener("message", ({ data }: MessageEvent<FromThread>) => {
        if (data.is === "part") partsSent++;
      });
      return worker;
    },
    log: { warn: (message: string) => void warned.push(message) } as unknown as Log,
    ...options,
  });
  await pool.started();
  return pool;
}

const by = (signal = new AbortController().signal, owner: `org:${string}` = OWNER) => ({ owner, signal });
const misfortune = (is: Misfortune["is"], times = 1, at = ROWS / 2): Misfortune => {
  const left = new Int32Array(new SharedArrayBuffer(4));
  left[0] = times;
  return { is, at, times: left };
};
const insert = (n: number) => database.commit((queries) => void queries.run(sql`INSERT INTO t VALUES (${n}, 'new')`));
const countNow = async () => parsed(await pool.read(countOfT, {}, by())).count;

async function numbers(given: { misfortune?: Misfortune } = {}): Promise<number[]> {
  let text = "";
  for await (const bytes of pool.lines(rowsOfT, { after: 0, ...given }, by())) text += Buffer.from(bytes).toString();
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { n: number }).n);
}

const ALL = Array.from({ length: ROWS }, (_, index) => index + 1);

test("lines arrive whole and in order, in parts that are sent only once the reader takes them", async () => {
  await opened();
  const lines = pool.lines(rowsOfT, { after: 0 }, by());
  const first = (await lines.next()).value as Uint8Array;
  expect(first.byteLength).toBeLessThan(256 * 1024);
  // Inserted before the parts that are in the window of the thread: far enough back to be seen.
  await insert(ROWS + 1);
  let text = Buffer.from(first).toString();
  for await (const bytes of lines) text += Buffer.from(bytes).toString();
  const seen = text
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { n: number }).n);
  expect(seen).toEqual([...ALL, ROWS + 1]);
  expect(started).toBe(2);
});

test("a whole response of many parts is sent as one", async () => {
  await opened();
  const { bytes } = await pool.read(rowsOfT as Read<RowsInput, unknown>, { after: 0 }, by());
  expect(Buffer.from(bytes).toString().trimEnd().split("\n")).toHaveLength(ROWS);
  expect(bytes.byteLength).toBeGreaterThan(4 * PART_CHARACTERS);
  expect(partsSent).toBe(1);
});

test("64 clients each see their acknowledged writes", async () => {
  await opened();
  let last = ROWS;
  let highest = ROWS;
  const client = async () => {
    for (let round = 0; round < 20; round++) {
      await insert(++last);
      const acknowledged = ++highest;
      expect(await countNow()).toBeGreaterThanOrEqual(acknowledged);
    }
  };
  await Promise.all(Array.from({ length: 64 }, client));
  expect(await countNow()).toBe(ROWS + 64 * 20);
});

test("an unflushed commit is not shown", async () => {
  const flush = Promise.withResolvers<void>();
  let isFlushed = false;
  const unflushed = (_: string, isOfRecords: boolean) => (isFlushed || !isOfRecords ? null : flush.promise);
  await opened({}, { queries: connection.queries, unflushed });
  connection.queries.run(sql`INSERT INTO t VALUES (${ROWS + 1}, 'unflushed')`);
  let shown: number | null = null;
  const reading = countNow().then((count) => {
    shown = count;
  });
  const lines = pool.lines(rowsOfT, { after: ROWS }, by());
  const line = lines.next().then(({ value }) => value as Uint8Array);
  // It has no records of reads.
  expect(parsed(await pool.read({ ...countOfT, isOfRecords: false }, {}, by())).count).toBe(ROWS + 1);
  // The answers have arrived by then.
  const late = await Promise.race([line, Bun.sleep(300)]);
  expect({ late, shown }).toEqual({ late: undefined, shown: null });
  isFlushed = true;
  flush.resolve();
  await reading;
  expect(shown).toBe(ROWS + 1);
  expect(Buffer.from(await line).toString()).toContain("unflushed");
  await lines.return(undefined);
});

test("a long read of one owner leaves the thread to others, and ends when its client disconnects", async () => {
  await opened({ count: 1 });
  const left = new AbortController();
  const long = Promise.all(Array.from({ length: 8 }, () => pool.read(longOfT, { steps: 10_000 }, by(left.signal))));
  const ended = expect(long).rejects.toThrow("aborted");
  const startedAt = performance.now();
  const others = `org:org_2` as const;
  for (let n = 0; n < 5; n++) await pool.read(countOfT, {}, by(undefined, others));
  // Each waits for a part or two of the other owner, not for all of its eight reads.
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  left.abort();
  await ended;
  // The thread is idle soon: no step of these reads is left.
  expect(await countNow()).toBe(ROWS);
});

describe("a thread that ends", () => {
  test.each(["exit", "throw"] as const)(
    "by %s amid an export: the other continues it, with no line lost or doubled",
    async (is) => {
      await opened();
      expect(await numbers({ misfortune: misfortune(is) })).toEqual(ALL);
      expect(warned).toEqual([expect.stringContaining("reader thread")]);
      await pool.started();
      expect(started).toBe(3);
    },
  );

  test("because a part stalls: its read completes", async () => {
    await opened({ stallMs: 300 });
    expect(await numbers({ misfortune: misfortune("stall") })).toEqual(ALL);
    expect(warned).toEqual([expect.stringContaining("reader thread")]);
  });

  test("alone: its read waits for the replacement thread", async () => {
    await opened({ count: 1 });
    expect(parsed(await pool.read(countOfT, { misfortune: misfortune("exit") }, by()))).toEqual({ count: ROWS });
    expect(started).toBe(2);
  });

  test("twice in the same read: the read fails with not_ready, and no third thread runs it", async () => {
    await opened();
    const twice = misfortune("exit", 3);
    await expect(numbers({ misfortune: twice })).rejects.toMatchObject({ code: "not_ready" });
    expect(twice.times[0]).toBe(1);
    await pool.started();
    expect(await countNow()).toBe(ROWS);
  });

  test("three times in a minute: reads run on the event loop, and the pool is degraded", async () => {
    await opened({ count: 1 });
    await expect(numbers({ misfortune: misfortune("exit", 2) })).rejects.toMatchObject({ code: "not_ready" });
    await pool.started();
    expect(pool.isDegraded).toBe(false);
    await expect(numbers({ misfortune: misfortune("exit", 1) })).rejects.toMatchObject({ code: "not_ready" });
    expect(pool.isDegraded).toBe(true);
    expect(await numbers()).toEqual(ALL);
    expect(await countNow()).toBe(ROWS);
    expect(started).toBe(3);
  });
});

test("a running read ends when the pool is closed", async () => {
  await opened({ count: 1 });
  const long = expect(pool.read(longOfT, { steps: 100_000 }, by())).rejects.toMatchObject({ code: "not_ready" });
  await countNow();
  await pool.close();
  await long;
});

test("an error of a read leaves its thread running", async () => {
  await opened();
  await expect(numbers({ misfortune: misfortune("fail") })).rejects.toThrow("as a test asked for");
  expect(await numbers()).toEqual(ALL);
  expect(warned).toEqual([]);
});
