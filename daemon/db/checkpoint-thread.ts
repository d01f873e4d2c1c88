/**
 * The thread that checkpoints the log: writes it into the database file. It sleeps until a checkpoint is requested (CHECKPOINTS), then
 * sends the number of the completed request, or the reason of a failure as text.
 */
import { Database } from "bun:sqlite";
import { fdatasyncSync, openSync } from "node:fs";
import { unlessFull } from "../core/disk-failure.ts";
import { describeError } from "../core/service-error.ts";
import { CHECKPOINTS } from "./checkpoints.ts";
import { LOG_BYTES } from "./client.ts";

declare const self: Worker;

self.onmessage = ({ data: { places, file } }: MessageEvent<{ places: Int32Array; file: string }>) => {
  try {
    const database = new Database(file, { create: false, readwrite: true });
    database.run("PRAGMA busy_timeout = 5000");
    // The log is synced before it is written into the file, and the file before the log restarts. The write that restarts the log is synced
    // before other commits: a power loss loses at most one commit.
    database.run("PRAGMA synchronous = FULL");
    database.run("PRAGMA wal_autocheckpoint = 0");
    database.run(`PRAGMA journal_size_limit = ${LOG_BYTES}`);
    // Never closed: closing would release all locks of this process on the file (POSIX, fcntl).
    work(database, file, places, openSync(file, "r"));
    database.close();
  } catch (error) {
    // Visible to the event loop before the message arrives.
    Atomics.store(places, CHECKPOINTS.hasFailed, 1);
    postMessage(describeError(error));
  } finally {
    Atomics.store(places, CHECKPOINTS.hasEnded, 1);
    Atomics.notify(places, CHECKPOINTS.hasEnded);
  }
};

function work(database: Database, file: string, places: Int32Array, written: number): void {
  // Does not wait for readers or writers.
  const checkpoint = database.query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(PASSIVE)");
  for (let done = 0; ; ) {
    Atomics.wait(places, CHECKPOINTS.asked, done);
    if (Atomics.load(places, CHECKPOINTS.isOver) === 1) return;
    done = Atomics.load(places, CHECKPOINTS.asked);
    let isWhole = false;
    unlessFull(() => {
      const { log, checkpointed } = checkpoint.get() ?? { log: 0, checkpointed: -1 };
      isWhole = log > 0 && log === checkpointed;
    }, file);
    // SQLite syncs only after the last page of the log. A sync that fails, even for lack of space, may have lost pages.
    fdatasyncSync(written);
    if (isWhole) unlessFull(() => restartLog(database), file);
    postMessage(done);
  }
}

/**
 * Restarts a log that is fully written into the database, by a write that changes nothing: the first write to such a log restarts it, and
 * SQLite syncs the log's header within COMMIT, which takes seconds on a busy disk. Throws SQLITE_BUSY if another connection writes: then
 * that connection restarts the log.
 */
function restartLog(database: Database): void {
  database.run("PRAGMA busy_timeout = 0");
  try {
    database.run("BEGIN IMMEDIATE");
    const [version] = database.query<[number], []>("PRAGMA user_version").values()[0] ?? [];
    database.run(`PRAGMA user_version = ${version}`);
    database.run("COMMIT");
  } finally {
    if (database.inTransaction) database.run("ROLLBACK");
    database.run("PRAGMA busy_timeout = 5000");
  }
}
