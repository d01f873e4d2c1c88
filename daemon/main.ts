#!/usr/bin/env bun
/** Owns the entry of the binary, which is daemon, client and operator tool, and the process of a build. */
import { runCommandLine } from "./cli/program.ts";
import { BUILD_WORKER } from "./domain/templates/builds/order.ts";

const line = process.argv.slice(2);
// A process that the daemon has started for itself. What it needs is loaded only there.
const isWorker = line[0] === BUILD_WORKER;
process.exit(isWorker ? await (await import("./cli/build-worker.ts")).runBuildWorker() : await runCommandLine(line));
