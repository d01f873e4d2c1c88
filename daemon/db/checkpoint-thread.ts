/**
 * The thread that writes the database's log into the database. It sleeps until a checkpoint is requested (CHECKPOINTS), and sends the number of
 * the request that is done, or the reason of a failure as text.
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
    // The log is synced before it is written into the file, and the file before the log restarts. So is the write that restarts it before
    // others commit: a loss of power takes one commit at most.
    database.run("PRAGMA synchronous = FULL");
    database.run("PRAGMA wal_autocheckpoint = 0");
    database.run(`PRAGMA journal_size_limit = ${LOG_BYTES}`);
    // Never closed: that would release all locks that this process has of the file (POSIX, fcntl).
    work(database, file, places, openSync(file, "r"));
    database.close();
  } catch (error) {
    // Seen by the event loop before the message arrives.
    Atomics.store(places, CHECKPOINTS.hasFailed, 1);
    postMessage(describeError(error));
  } finally {
    Atomics.store(places, CHECKPOINTS.hasEnded, 1);
    Atomics.notify(places, CHECKPOINTS.hasEnded);
  }
};

function work(database: Database, file: string, places: Int32Array, written: number): void {
  // Waits for no reader or writer.
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
    // SQLite syncs only after the last page of the log. Of a sync that fails for space, too, pages may be lost.
    fdatasyncSync(written);
    if (isWhole) unlessFull(() => restartLog(database), file);
    postMessage(done);
  }
}

/**
 * The first write to a log that is written into the database restarts it, and within COMMIT SQLite syncs its header: at a busy disk that takes
 * seconds. Changes nothing. Throws SQLITE_BUSY if another connection writes: then that one restarts the log.
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
