/** Whether a server listens on a port of a guest; none does in a guest that does not run or answer. */
import { setTimeout as sleep } from "node:timers/promises";
import { listeningInGuest } from "../../host/guest-link/listening.ts";
import type { SandboxAccess } from "./deps.ts";

export async function listeningPorts(
  sandboxes: SandboxAccess,
  sandboxId: string,
  ports: readonly number[],
): Promise<Set<number>> {
  if (ports.length === 0) return new Set();
  try {
    return await sandboxes.withGuest(sandboxId, (link) => listeningInGuest(link, ports));
  } catch {
    return new Set();
  }
}

const POLL_MS = 200;

/** Resolves when a server listens on the port, after `waitMs`, or when `signal` aborts. */
export async function untilListening(
  sandboxes: SandboxAccess,
  sandboxId: string,
  port: number,
  waitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + waitMs;
  while (!signal.aborted && performance.now() < deadline) {
    if ((await listeningPorts(sandboxes, sandboxId, [port])).has(port)) return;
    const left = Math.max(0, deadline - performance.now());
    await sleep(Math.min(POLL_MS, left), undefined, { signal }).catch(() => {});
  }
}
