/** Vsock transport by vhost-device-vsock: a process per guest, the guest's ports as Unix sockets. */
import { lchownSync, rmSync } from "node:fs";
import { DEVICE_BUFFER_BYTES, type HasQuirk, quirksOf } from "../../../../shared/agent-protocol/device-quirks.ts";
import { asUser } from "../../isolation/argv.ts";
import type { Identity } from "../../isolation/ids.ts";
import { endProcess, type HostProcess, type KnownProcess, startEntering } from "../../process.ts";
import { socketThere } from "../../unix-socket.ts";
import type { GuestLink } from "../handshake.ts";
import { type LinkedSocket, linkSocket } from "../link-socket.ts";
import type { GuestAddress, VsockEndpoint, VsockTransport } from "./transport.ts";

const START_DEADLINE_MS = 10_000;

/** `port` is dialled by its guests; `version` is the program's, null if it is unknown. */
export function makeVhostUserTransport(program: string, version: string | null, port: number): VsockTransport {
  return {
    kind: "vhost-user",
    device_file: null,
    // Each device has its own CID space.
    firstFree: ([first = null]) => first,
    open: async (address, onLink) => {
      for (const stale of [address.guest_socket, address.device_socket]) rmSync(stale, { force: true });
      const has = quirksOf(version);
      const stopListening = listen(address, port, has, onLink);
      let device: HostProcess;
      try {
        device = await startDevice(program, address);
      } catch (error) {
        stopListening();
        throw error;
      }
      const endpoint = endpointOf(address, device, has, stopListening);
      try {
        await socketThere(address.device_socket, START_DEADLINE_MS, device.exited);
        if (address.users) giveTo(address.device_socket, address.users.qemu);
      } catch (error) {
        await endpoint.close();
        throw error;
      }
      return endpoint;
    },
    // The device may be of an older version than the installed program.
    adopt: async (address, process, onLink) => {
      const has = quirksOf(null);
      return endpointOf(address, process, has, listen(address, port, has, onLink));
    },
  };
}

async function startDevice(program: string, address: GuestAddress): Promise<HostProcess> {
  const argv = deviceArgv(program, address);
  const ownArgv = address.users ? asUser(address.users.vsock, argv) : argv;
  return await startEntering("vhost-device-vsock", ownArgv, address.log_file, address.enter);
}

export function deviceArgv(program: string, address: Omit<GuestAddress, "enter">): string[] {
  return [
    program,
    "--guest-cid",
    String(address.guest_cid),
    "--socket",
    address.device_socket,
    "--uds-path",
    address.guest_socket,
    "--tx-buffer-size",
    // The quirk small_buffer.
    String(DEVICE_BUFFER_BYTES),
    // The quirk siblings_meet: each gets a separate group.
    "--groups",
    address.sandbox_id,
  ];
}

function giveTo(socket: string, { uid }: Identity): void {
  lchownSync(socket, uid, uid);
}

function endpointOf(
  address: GuestAddress,
  process: KnownProcess | null,
  has: HasQuirk,
  stopListening: () => void,
): VsockEndpoint {
  return {
    has,
    device: { kind: "vhost-user", socket: address.device_socket },
    process,
    close: async () => {
      stopListening();
      if (process) await endProcess(process);
      for (const used of [address.guest_socket, address.device_socket]) rmSync(used, { force: true });
    },
  };
}

/** Accepts the guest's connections to the port, which arrive at a socket named after the port. */
function listen(address: GuestAddress, port: number, has: HasQuirk, onLink: (link: GuestLink) => void): () => void {
  const path = `${address.guest_socket}_${port}`;
  rmSync(path, { force: true });
  const listener = Bun.listen<LinkedSocket | undefined>({
    unix: path,
    socket: {
      open: (socket) => {
        // The device exposes no source port: only the name of the socket, for the port that was dialled.
        socket.data = linkSocket(socket, { to: port, from: null }, has);
        onLink(socket.data.link);
      },
      data: (socket, bytes) => socket.data?.receive(bytes),
      drain: (socket) => socket.data?.drain(),
      close: (socket) => socket.data?.end("the guest closed it"),
      error: (socket, error) => socket.data?.end(error.message),
    },
  });
  if (address.users) giveTo(path, address.users.vsock);
  return () => {
    listener.stop(true);
    rmSync(path, { force: true });
  };
}
