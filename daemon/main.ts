#!/usr/bin/env bun
import { runCommandLine } from "./cli/kit/run-command-line.ts";
/** Entry point of the binary, which is daemon, client and operator tool, and of each worker process that these start. */
import { makeProgram } from "./cli/program.ts";
import { BACKUP_WORKER, BUILD_WORKER, FETCH_RELAY } from "./host/own-processes.ts";

const [first, ...rest] = process.argv.slice(2);
// Loads the dependencies of each on demand.
const own = new Map<string | undefined, () => Promise<number>>([
  [BUILD_WORKER, async () => await (await import("./cli/host/build-worker.ts")).runBuildWorker()],
  [BACKUP_WORKER, async () => await (await import("./cli/host/backup-worker.ts")).runBackupWorker()],
  [FETCH_RELAY, async () => await (await import("./host/fetch-relay.ts")).runFetchRelay(rest)],
]);
process.exit(await (own.get(first)?.() ?? runCommandLine(process.argv.slice(2), makeProgram)));
