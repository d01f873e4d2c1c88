/**
 * Owns giving a running guest a new vsock device in place of one that cannot work any more; its agent dials again over it.
 *
 *   end its process → unplug → start another → plug
 */
import { faultPoint } from "../../core/fault-points.ts";
import { unlessGivenUp } from "../../core/published.ts";
import { isAlive } from "../process.ts";
import { type GuestParts, recordParts, vsockAddress } from "./steps.ts";

/**
 * A vhost-device-vsock (0.3.0) is lost with its process, and with the connection that a guest had while it stood still: what
 * arrives while the guest's queues are stopped, its end too, ends the thread that serves them.
 */
export function hasLostVsock({ endpoint, undialled, connection }: GuestParts): boolean {
  if (!endpoint || endpoint.process === null) return false;
  if (!isAlive(endpoint.process)) return true;
  return connection.state.value.link === null && endpoint !== undialled;
}

/** Throws when QEMU or the guest refuses, or when it is given up. */
export async function renewVsock(parts: GuestParts, signal: AbortSignal): Promise<void> {
  const { machine, host, plan, connection } = parts;
  if (!machine || !parts.endpoint) throw new Error("there is no vsock device to renew");
  await parts.endpoint.close();
  await unlessGivenUp(signal, machine.unplugVsock());
  const endpoint = await host.transport.open(vsockAddress(host, plan), (link) => {
    parts.undialled = undefined;
    connection.accept(link);
  });
  parts.endpoint = endpoint;
  parts.undialled = endpoint;
  await faultPoint("vsock.renewed");
  if (endpoint.process) await host.confinement.add(plan.sandbox_id, endpoint.process.pid);
  await recordParts(parts);
  await unlessGivenUp(signal, machine.plugVsock(endpoint.device));
}
