/**
 * The thread that writes the database's log into the database, so that the event loop need not. It sleeps until that is asked for; how it
 * is told is CHECKPOINTS. Where it cannot, the log stays, and the event loop does it as if there were no thread.
 */
import { Database } from "bun:sqlite";
import { fdatasyncSync, openSync } from "node:fs";
import { CHECKPOINTS } from "./checkpoints.ts";

declare const self: Worker;

self.onmessage = ({ data: { places, file } }: MessageEvent<{ places: Int32Array; file: string }>) => {
  let database: Database | null = null;
  try {
    database = new Database(file, { create: false, readwrite: true });
    // The log is flushed before it is written into the file, and the file before the log begins anew.
    database.run("PRAGMA synchronous = NORMAL");
    database.run("PRAGMA wal_autocheckpoint = 0");
    // Never closed: that would let go of all locks that this process has of the file (POSIX, fcntl).
    work(database, places, openSync(file, "r"));
  } finally {
    database?.close();
    Atomics.store(places, CHECKPOINTS.hasEnded, 1);
    Atomics.notify(places, CHECKPOINTS.hasEnded);
  }
};

function work(database: Database, places: Int32Array, written: number): void {
  // Nobody is waited for: who writes goes on meanwhile.
  const checkpoint = database.query("PRAGMA wal_checkpoint(PASSIVE)");
  for (let done = 0; ; ) {
    Atomics.wait(places, CHECKPOINTS.asked, done);
    if (Atomics.load(places, CHECKPOINTS.isOver) === 1) return;
    done = Atomics.load(places, CHECKPOINTS.asked);
    try {
      checkpoint.run();
      // SQLite does it for what is the last of a log, which here is left to a commit: that would have to wait for all of it.
      fdatasyncSync(written);
    } catch {
      // A full disk, or one that fails: whoever commits hears of it.
    }
  }
}
