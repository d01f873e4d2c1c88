/**
 * A process that commits to a database as the daemon does, 500 times a second: four rows with keys in random order, as records have. It
 * answers each message with its figures since the last one.
 */
import { randomBytes } from "node:crypto";
import { makeCheckpoints } from "../../../daemon/db/checkpoints.ts";
import { openConnection, rawQuery, rawStatement } from "../../../daemon/db/client.ts";
import { makeLogSync } from "../../../daemon/db/log-sync.ts";
import { makeDatabase } from "../../../daemon/db/transact.ts";
import { threadTime } from "../../../daemon/host/thread-time.ts";

export interface WriterFigures {
  /** Rows that were acknowledged: 1 to this number. */
  acknowledged: number;
  commits: number;
  longest_turn_ms: number;
  longest_turn_cpu_ms: number;
  longest_commit_ms: number;
}

const COMMITS_A_SECOND = 500;
const ROWS_A_COMMIT = 4;
const TEXT = "x".repeat(600);

/** A database of this size in MiB for writers. */
export function makeWritable(file: string, mib: number): void {
  const connection = openConnection(file);
  connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, key BLOB NOT NULL, text TEXT NOT NULL) STRICT");
  connection.execute("CREATE INDEX t_key ON t (key)");
  connection.execute("CREATE TABLE old (n INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT");
  for (let row = 0; row < mib; row++) {
    connection.execute("INSERT INTO old (bytes) VALUES (randomblob(1044480))");
    if (row % 16 === 15) connection.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  connection.close();
}

/** Starts a writer; it ends when it is disposed of. */
export async function startWriter(file: string) {
  const answers: ((figures: WriterFigures) => void)[] = [];
  const child = Bun.spawn([process.execPath, import.meta.filename, file], {
    stdio: ["ignore", "inherit", "inherit"],
    ipc: (figures: WriterFigures) => answers.shift()?.(figures),
  });
  const figures = () =>
    new Promise<WriterFigures>((answer, reject) => {
      answers.push(answer);
      void child.exited.then((status) => reject(new Error(`the writer has ended with ${status}`)));
      child.send("figures");
    });
  await figures();
  return {
    figures,
    [Symbol.asyncDispose]: async () => {
      child.send("stop");
      await child.exited;
    },
  };
}

async function write(file: string): Promise<void> {
  const end = (error: Error) => {
    console.error(error);
    process.exit(1);
  };
  const connection = openConnection(file);
  const database = makeDatabase(
    connection,
    () => false,
    makeLogSync(file, end),
    makeCheckpoints(file, connection, end),
    end,
  );
  const insert = rawStatement(connection.queries, "INSERT INTO t (n, key, text) VALUES (?, ?, ?)");
  let [{ acknowledged }] = rawQuery<{ acknowledged: number }>(
    connection.queries,
    "SELECT coalesce(max(n), 0) AS acknowledged FROM t",
  )([]) as [{ acknowledged: number }];
  let isOver = false;
  let figures = { commits: 0, longest_turn_ms: 0, longest_turn_cpu_ms: 0, longest_commit_ms: 0 };
  process.on("message", (message) => {
    if (message === "stop") isOver = true;
    else {
      process.send?.({ acknowledged, ...figures } satisfies WriterFigures);
      figures = { commits: 0, longest_turn_ms: 0, longest_turn_cpu_ms: 0, longest_commit_ms: 0 };
    }
  });
  let last = { at: performance.now(), cpu: threadTime() };
  const turn = () => {
    const now = { at: performance.now(), cpu: threadTime() };
    figures.longest_turn_ms = Math.max(figures.longest_turn_ms, now.at - last.at);
    figures.longest_turn_cpu_ms = Math.max(figures.longest_turn_cpu_ms, now.cpu - last.cpu);
    last = now;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const beganAt = performance.now();
  for (let commit = 0; !isOver; commit++) {
    const beforeMs = performance.now();
    const first = acknowledged + 1;
    await database.commit(() => {
      for (let row = 0; row < ROWS_A_COMMIT; row++) insert([first + row, randomBytes(16) as never, TEXT]);
    });
    acknowledged = first + ROWS_A_COMMIT - 1;
    figures.commits++;
    figures.longest_commit_ms = Math.max(figures.longest_commit_ms, performance.now() - beforeMs);
    const dueMs = beganAt + (commit * 1000) / COMMITS_A_SECOND - performance.now();
    if (dueMs > 1) await Bun.sleep(dueMs);
  }
  await database.close();
}

if (import.meta.main) await write(process.argv[2] as string).then(() => process.exit(0));
