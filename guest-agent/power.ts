/** Owns the method `power_off`: everything is written, everyone is ended, the machine stops. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Stream } from "../shared/agent-protocol/link.ts";
import * as libc from "./libc.ts";

/** For programs that save what they have when they are told to end. */
const GRACE_MS = 500;
/** For the answer to leave the guest before the guest is gone. */
const ANSWER_MS = 20;
const EVERYONE = -1;

export async function powerOff(stream: Stream): Promise<void> {
  signalEveryone("SIGTERM");
  const graceUntil = performance.now() + GRACE_MS;
  while (libc.hasChildren() && performance.now() < graceUntil) await sleep(10);
  signalEveryone("SIGKILL");
  libc.syncRoot();
  stream.finish({});
  await sleep(ANSWER_MS);
  libc.powerOff();
}

/** Everyone but us and the kernel's own. */
function signalEveryone(signal: NodeJS.Signals): void {
  try {
    process.kill(EVERYONE, signal);
  } catch {
    // Nobody is left.
  }
}
