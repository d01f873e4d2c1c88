/** Owns the vsock transport by vhost-device-vsock: a process per guest, the guest's ports as Unix sockets. */
import { rmSync } from "node:fs";
import { HOST_PORT } from "../../../../shared/agent-protocol/messages.ts";
import { endProcess, startProcess } from "../../process.ts";
import { socketThere } from "../../unix-socket.ts";
import { type GuestLink, linkSocket } from "../handshake.ts";
import type { VsockTransport } from "./transport.ts";

const START_DEADLINE_MS = 10_000;

export function makeVhostUserTransport(program: string): VsockTransport {
  return {
    kind: "vhost-user",
    open: async (address, onLink) => {
      const portSocket = `${address.guest_socket}_${HOST_PORT}`;
      for (const stale of [portSocket, address.guest_socket, address.device_socket]) rmSync(stale, { force: true });
      const listener = Bun.listen<Feed>({
        unix: portSocket,
        socket: {
          open: (socket) => {
            const { link, drain } = linkSocket(socket);
            socket.data = { link, drain };
            onLink(link);
          },
          data: (socket, bytes) => socket.data.link.receive(bytes),
          drain: (socket) => socket.data.drain(),
          close: (socket) => socket.data.link.close("the guest closed it"),
          error: (socket, error) => socket.data.link.close(error.message),
        },
      });
      const device = startProcess(
        "vhost-device-vsock",
        [
          program,
          "--guest-cid",
          String(address.guest_cid),
          "--socket",
          address.device_socket,
          "--uds-path",
          address.guest_socket,
          // Guests of one group may talk to each other: each gets a group of its own.
          "--groups",
          address.sandbox_id,
        ],
        address.log_file,
      );
      const close = async () => {
        listener.stop(true);
        await endProcess(device);
        for (const used of [portSocket, address.guest_socket, address.device_socket]) rmSync(used, { force: true });
      };
      try {
        await socketThere(address.device_socket, START_DEADLINE_MS, device.exited);
      } catch (error) {
        await close();
        throw error;
      }
      return { device: { kind: "vhost-user", socket: address.device_socket }, process: device, close };
    },
  };
}

interface Feed {
  link: GuestLink;
  drain(): void;
}
