/** Whether a server listens on a port of a guest; false if the guest does not run or respond. */
import { monotonicMs, sleep } from "../../core/clock.ts";
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
/** Waits of a sandbox with this interval. With more, each polls less often, so that the total rate of polls of the guest stays the same. */
const FREQUENT_WAITS = 4;
/** How many wait, by sandbox. */
const waits = new Map<string, number>();

/** Resolves when a server listens on the port, after `waitMs`, or when `signal` aborts. */
export async function untilListening(
  sandboxes: SandboxAccess,
  sandboxId: string,
  port: number,
  waitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const deadline = monotonicMs() + waitMs;
  waits.set(sandboxId, (waits.get(sandboxId) ?? 0) + 1);
  try {
    while (!signal.aborted && monotonicMs() < deadline) {
      if ((await listeningPorts(sandboxes, sandboxId, [port])).has(port)) return;
      const left = Math.max(0, deadline - monotonicMs());
      const pollMs = POLL_MS * Math.max(1, (waits.get(sandboxId) ?? 0) / FREQUENT_WAITS);
      await sleep(Math.min(pollMs, left), signal).catch(() => {});
    }
  } finally {
    const others = (waits.get(sandboxId) ?? 0) - 1;
    if (others > 0) waits.set(sandboxId, others);
    else waits.delete(sandboxId);
  }
}
