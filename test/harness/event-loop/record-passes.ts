/**
 * Recorder of long passes of a daemon's event loop, for builds of any age: preloaded by BUN_OPTIONS, it writes a line to the file of
 * ROOMD_TEST_PASSES for each pass with over 2 ms of the thread's processor time. A timer of 1 ms ends a pass: figures are up to 1 ms short.
 */
import { appendFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { threadTime } from "../../../daemon/host/thread-time.ts";

const BEAT_MS = 1;
const LONG_MS = 2;

const file = process.env.ROOMD_TEST_PASSES;
// The daemon refuses to start with it.
delete process.env.BUN_OPTIONS;
if (file && isMainThread && process.argv.at(-1) === "serve") {
  let last = threadTime();
  setInterval(() => {
    const ms = threadTime() - last - BEAT_MS;
    if (ms > LONG_MS) appendFileSync(file, `${ms}\n`);
    last = threadTime();
  }, BEAT_MS);
}
