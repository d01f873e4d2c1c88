/** Passes of a daemon's event loop, from outside of its code: older builds have no record of their own. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestDaemon } from "../daemon.ts";

const PRELOADED = join(import.meta.dirname, "record-passes.ts");

const fileOf = (daemon: TestDaemon) => join(daemon.home, "passes");

/** Has the daemon record its passes from its next start on. */
export function recordPasses(daemon: TestDaemon): void {
  daemon.env.BUN_OPTIONS = `--preload ${PRELOADED}`;
  daemon.env.ROOMD_TEST_PASSES = fileOf(daemon);
  // As the daemon sets it: otherwise it executes itself again, without the preloaded file.
  daemon.env.BUN_GC_TIMER_INTERVAL = "60000";
}

/** Processor time of each pass of over 2 ms, in milliseconds; none if they are not recorded. */
export function passesOf(daemon: TestDaemon): number[] {
  const file = fileOf(daemon);
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1).map(Number) : [];
}
