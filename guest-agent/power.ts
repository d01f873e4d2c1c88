/** The method `power_off`: ends all processes, flushes all writes, marks the root file system clean, powers the machine off. */
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Stream } from "../shared/agent-protocol/link.ts";
import * as libc from "./libc.ts";
import { log } from "./log.ts";

/** For programs that save their state on SIGTERM. */
const GRACE_MS = 500;
/** Time for the answer to reach the host before the guest powers off. */
const ANSWER_MS = 20;
const EVERYONE = -1;
const READ_ONLY_MS = 10_000;
const READ_ONLY_ROOT = /^\S+ \/ \S+ ro[, ]/m;

export async function powerOff(stream: Stream): Promise<void> {
  signalEveryone("SIGTERM");
  const graceUntil = performance.now() + GRACE_MS;
  while (libc.hasChildren() && performance.now() < graceUntil) await sleep(10);
  signalEveryone("SIGKILL");
  libc.syncRoot();
  await makeReadOnly();
  stream.finish({});
  await sleep(ANSWER_MS);
  libc.powerOff();
}

/**
 * The agent itself has files open, even after all other processes have ended: the kernel's emergency remount ignores open files. It runs
 * asynchronously.
 */
async function makeReadOnly(): Promise<void> {
  try {
    writeFileSync("/proc/sysrq-trigger", "u");
    const until = performance.now() + READ_ONLY_MS;
    while (!READ_ONLY_ROOT.test(readFileSync("/proc/mounts", "utf8")) && performance.now() < until) await sleep(10);
  } catch (error) {
    log("read-only", error);
  }
}

/** Signals every process except this one and kernel threads. */
function signalEveryone(signal: NodeJS.Signals): void {
  try {
    process.kill(EVERYONE, signal);
  } catch {
    // No process is left.
  }
}
