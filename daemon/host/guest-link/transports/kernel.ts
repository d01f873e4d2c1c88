/** Vsock transport by the kernel's vhost-vsock: one AF_VSOCK listener for all guests, distinguished by their CID. */
import type { SocketHandler, UnixSocketOptions } from "bun";
import { NO_QUIRKS } from "../../../../shared/agent-protocol/device-quirks.ts";
import { HOST_PORTS } from "../../../../shared/agent-protocol/messages.ts";
import type { GuestLink } from "../handshake.ts";
import { type LinkedSocket, linkSocket } from "../link-socket.ts";
import { cidDevice, firstFreeCid } from "./host-cids.ts";
import type { VsockTransport } from "./transport.ts";
import { listenVsock, peerAddress } from "./vsock-socket.ts";

/** The kernel's vhost-vsock. */
export const VHOST_VSOCK = "/dev/vhost-vsock";

/** Binds the first free port of HOST_PORTS: only for a process that starts guests. Throws if no port is free, or none may be bound. */
export function makeKernelTransport(firstPort: number): VsockTransport & { port: number; stop(): void } {
  const guests = new Map<number, (link: GuestLink) => void>();
  const { fd, port } = listenFirstFree(firstPort);
  const handlers: SocketHandler<LinkedSocket | null> = {
    open: (socket) => {
      const peer = "fd" in socket && typeof socket.fd === "number" ? peerAddress(socket.fd) : null;
      const onLink = peer === null ? undefined : guests.get(peer.cid);
      if (!peer || !onLink) {
        socket.data = null;
        socket.end();
        return;
      }
      socket.data = linkSocket(socket, { to: port, from: peer.port }, NO_QUIRKS);
      onLink(socket.data.link);
    },
    data: (socket, bytes) => socket.data?.receive(bytes),
    drain: (socket) => socket.data?.drain(),
    close: (socket) => socket.data?.end("the guest closed it"),
    error: (socket, error) => socket.data?.end(error.message),
  };
  // Bun adopts a listening descriptor, which its types do not declare.
  const options: unknown = { fd, socket: handlers };
  const listener = Bun.listen(options as UnixSocketOptions<LinkedSocket | null>);

  const register: VsockTransport["open"] = async (address, onLink) => {
    guests.set(address.guest_cid, onLink);
    return {
      device: { kind: "kernel", guest_cid: address.guest_cid },
      process: null,
      has: NO_QUIRKS,
      close: async () => {
        if (guests.get(address.guest_cid) === onLink) guests.delete(address.guest_cid);
      },
    };
  };

  return {
    kind: "kernel",
    device_file: VHOST_VSOCK,
    firstFree: (cids) => firstFreeCid(cids, cidDevice(VHOST_VSOCK)),
    open: register,
    adopt: (address, _process, onLink) => register(address, onLink),
    port,
    stop: () => listener.stop(true),
  };
}

/** Another daemon of this host may use the first port: its guests are not this daemon's, and an agent tries all ports. */
function listenFirstFree(firstPort: number): { fd: number; port: number } {
  for (let port = firstPort; port < firstPort + HOST_PORTS; port++) {
    const fd = listenVsock(port);
    if (fd !== null) return { fd, port };
  }
  throw new Error(`the vsock ports ${firstPort} to ${firstPort + HOST_PORTS - 1} are taken on this host`);
}
