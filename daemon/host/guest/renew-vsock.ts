/**
 * Owns giving a running guest a new vsock device in place of one that cannot work any more; its agent dials again over it.
 *
 *   end its process → unplug → start another → plug
 */
import { unlessGivenUp } from "../../core/published.ts";
import { isAlive } from "../process.ts";
import { type GuestParts, recordParts, vsockAddress } from "./steps.ts";

/**
 * A vhost-device-vsock (0.3.0) is lost with its process, and with the connection that a guest had while it stood still: what
 * arrives while the guest's queues are stopped, its end too, ends the thread that serves them.
 */
export function hasLostVsock({ endpoint, connection }: GuestParts): boolean {
  if (!endpoint || endpoint.process === null) return false;
  return connection.state.value.link === null || !isAlive(endpoint.process);
}

/** Throws when QEMU or the guest refuses, or when it is given up. */
export async function renewVsock(parts: GuestParts, signal: AbortSignal): Promise<void> {
  const { machine, endpoint, host, plan, connection } = parts;
  if (!machine || !endpoint) throw new Error("there is no vsock device to renew");
  await endpoint.close();
  await unlessGivenUp(signal, machine.unplugVsock());
  parts.endpoint = await host.transport.open(vsockAddress(host, plan), (link) => connection.accept(link));
  if (parts.endpoint.process) await host.confinement.add(plan.sandbox_id, parts.endpoint.process.pid);
  await recordParts(parts);
  await unlessGivenUp(signal, machine.plugVsock(parts.endpoint.device));
}
