#!/usr/bin/env bun
/** Owns the entry of the binary, which is daemon, client and operator tool. */
import { runCommandLine } from "./cli/program.ts";

process.exit(await runCommandLine(process.argv.slice(2)));
