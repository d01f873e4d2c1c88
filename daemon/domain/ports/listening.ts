/** Owns whether somebody listens on a port at this moment; nobody does in a guest that does not run or answer. */
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
