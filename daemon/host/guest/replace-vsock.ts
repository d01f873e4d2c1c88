/**
 * Gives a running guest a new vsock device in place of a lost one; its agent dials again over it.
 *
 *     end its process → unplug → start another → plug
 */

import { unlessGivenUp } from "../../core/concurrency/published.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { isAlive } from "../process.ts";
import { plugVsock } from "./plug.ts";
import { type GuestParts, vsockAddress } from "./steps.ts";

/**
 * Whether the vsock device is lost. A device is lost with its process. With the quirks lost_while_stopped or end_untold it may be lost with
 * the connection too: the agent then does not dial over it again. While the agent's connection is being set up, its device works.
 */
export function hasLostVsock({ endpoint, undialled, connection }: GuestParts): boolean {
  if (!endpoint || endpoint.process === null) return false;
  if (!isAlive(endpoint.process)) return true;
  if (!endpoint.has("lost_while_stopped") && !endpoint.has("end_untold")) return false;
  return connection.state.value.link === null && endpoint !== undialled && !connection.isBeingMet;
}

/** Throws if QEMU or the guest refuses, or on cancellation. */
export async function replaceVsock(parts: GuestParts, signal: AbortSignal): Promise<void> {
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
  const recorded = await parts.record.advance("vsock_replaced", { vsock: endpoint.process });
  await unlessGivenUp(signal, plugVsock(machine, endpoint, recorded));
}
