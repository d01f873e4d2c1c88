/** Interface of a vsock transport: two of them exist, the kernel's vhost-vsock and a vhost-user device. */
import type { HasQuirk } from "../../../../shared/agent-protocol/device-quirks.ts";
import type { GuestUsers } from "../../isolation/index.ts";
import type { VsockDevice } from "../../machine/machine.ts";
import type { Enter, KnownProcess } from "../../process.ts";
import type { GuestLink } from "../handshake.ts";

export interface GuestAddress {
  sandbox_id: string;
  guest_cid: number;
  /** Socket of the vhost-user device, towards QEMU. */
  device_socket: string;
  /** Base path: the guest's connections arrive on sockets next to it. */
  guest_socket: string;
  log_file: string;
  /** Users of the device's process, and of QEMU, which connects to it; null if both are ours. */
  users: GuestUsers | null;
  /** Puts the device's process into the guest's group. */
  enter: Enter;
}

/** The host's end of one guest's vsock. */
export interface VsockEndpoint {
  device: VsockDevice;
  /** The device's own process; null if the kernel is the device. */
  process: KnownProcess | null;
  /** Quirks of the device. */
  has: HasQuirk;
  /** Stops listening and ends the process. Idempotent. */
  close(): Promise<void>;
}

export interface VsockTransport {
  kind: VsockDevice["kind"];
  /** Device file that QEMU gets as an open descriptor; null if it connects to a socket. */
  device_file: string | null;
  /** The first of these CIDs that no virtual machine of the host uses; null if all are in use. */
  firstFree(cids: Iterable<number>): number | null;
  /** Creates the guest's device and listens; `onLink` is called for every connection that the guest makes. */
  open(address: GuestAddress, onLink: (link: GuestLink) => void): Promise<VsockEndpoint>;
  /** Listens again for a guest whose device, and `process` of it, an earlier daemon started. */
  adopt(address: GuestAddress, process: KnownProcess | null, onLink: (link: GuestLink) => void): Promise<VsockEndpoint>;
}
