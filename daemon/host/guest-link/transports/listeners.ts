/**
 * Search for other listeners on the host's vsock. A guest of the kernel's vsock reaches every such port, whatever its egress list allows:
 * systemd 256 and newer, for one, binds sshd to port 22 on hosts that are virtual machines themselves.
 *
 * The kernel reports them by sock_diag(7), linux/vm_sockets_diag.h; /proc has no list of them.
 */
import { dlopen } from "bun:ffi";
import { HOST_PORT, HOST_PORTS } from "../../../../shared/agent-protocol/messages.ts";
import { check, SystemError } from "../../files/libc.ts";

const AF_NETLINK = 16;
const AF_VSOCK = 40;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
const NETLINK_SOCK_DIAG = 4;
const MSG_DONTWAIT = 0x40;

const SOCK_DIAG_BY_FAMILY = 20;
const NLMSG_ERROR = 2;
const NLMSG_DONE = 3;
const NLM_F_REQUEST_DUMP = 0x301;
const NLMSG_HEADER_BYTES = 16;
const REQUEST_BYTES = 24;
const TCP_LISTEN = 10;

/** Offsets in struct vsock_diag_msg, after the header. */
const AT_SOURCE_CID = 4;
const AT_SOURCE_PORT = 8;
const MESSAGE_BYTES = 32;

/** The host's address, as seen by guests, and any address. */
const VMADDR_CID_HOST = 2;
const VMADDR_CID_ANY = 0xffffffff;
/** The most that the kernel returns in one call. */
const BUFFER_BYTES = 32 * 1024;

const { symbols: libc } = dlopen("libc.so.6", {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  send: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
  recv: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
  close: { args: ["i32"], returns: "i32" },
});

/** Why this kernel cannot report them; cached, since it looks for a module on each query. */
let cannotTell: string | null = null;

/** The ports that guests reach over the kernel's vsock and that belong to no roomd, in order; or the reason that they are unknown. */
export type ForeignListeners = { ports: number[] } | { unknown: string };

/** `own` are the ports that this process listens on. */
export function foreignListeners(own: readonly number[]): ForeignListeners {
  if (cannotTell !== null) return { unknown: cannotTell };
  try {
    return { ports: foreign(askKernel(), own) };
  } catch (error) {
    cannotTell = error instanceof Error ? error.message : String(error);
    return { unknown: cannotTell };
  }
}

/** Ports of the listeners that guests reach and that are not ours: only daemons listen on the ports that agents dial. Pure. */
export function foreign(listeners: readonly Listener[], own: readonly number[]): number[] {
  const reached = listeners.filter(({ cid }) => cid === VMADDR_CID_HOST || cid === VMADDR_CID_ANY);
  const isDaemons = (port: number) => (port >= HOST_PORT && port < HOST_PORT + HOST_PORTS) || own.includes(port);
  const ports = reached.map(({ port }) => port).filter((port) => !isDaemons(port));
  return [...new Set(ports)].sort((a, b) => a - b);
}

export interface Listener {
  cid: number;
  port: number;
}

function askKernel(): Listener[] {
  const socket = check(libc.socket(AF_NETLINK, SOCK_RAW_CLOEXEC, NETLINK_SOCK_DIAG), "socket AF_NETLINK");
  try {
    const request = diagRequest();
    check(Number(libc.send(socket, request, request.byteLength, 0)), "sock_diag");
    const found: Listener[] = [];
    const buffer = Buffer.alloc(BUFFER_BYTES);
    while (true) {
      const length = check(Number(libc.recv(socket, buffer, buffer.byteLength, MSG_DONTWAIT)), "sock_diag");
      const { listeners, over } = readAnswer(buffer.subarray(0, length));
      found.push(...listeners);
      if (over) return found;
    }
  } finally {
    libc.close(socket);
  }
}

/** struct nlmsghdr and struct vsock_diag_req: a request for all listening sockets. */
function diagRequest(): Buffer {
  const request = Buffer.alloc(NLMSG_HEADER_BYTES + REQUEST_BYTES);
  request.writeUInt32LE(request.byteLength, 0);
  request.writeUInt16LE(SOCK_DIAG_BY_FAMILY, 4);
  request.writeUInt16LE(NLM_F_REQUEST_DUMP, 6);
  request.writeUInt8(AF_VSOCK, NLMSG_HEADER_BYTES);
  request.writeUInt32LE(1 << TCP_LISTEN, NLMSG_HEADER_BYTES + 4);
  return request;
}

/** Parses one part of the kernel's answer: its listeners, and whether it was the last. Throws SystemError with the kernel's error. */
export function readAnswer(answer: Buffer): { listeners: Listener[]; over: boolean } {
  const listeners: Listener[] = [];
  for (let at = 0; at + NLMSG_HEADER_BYTES <= answer.byteLength; ) {
    const length = answer.readUInt32LE(at);
    const type = answer.readUInt16LE(at + 4);
    const body = answer.subarray(at + NLMSG_HEADER_BYTES, at + length);
    if (length < NLMSG_HEADER_BYTES) break;
    if (type === NLMSG_DONE) return { listeners, over: true };
    if (type === NLMSG_ERROR) throw new SystemError(`E${-body.readInt32LE(0)}`, "this kernel has no vsock_diag");
    if (type === SOCK_DIAG_BY_FAMILY && body.byteLength >= MESSAGE_BYTES && body[0] === AF_VSOCK) {
      listeners.push({ cid: body.readUInt32LE(AT_SOURCE_CID), port: body.readUInt32LE(AT_SOURCE_PORT) });
    }
    // Each starts at a multiple of four.
    at += (length + 3) & ~3;
  }
  return { listeners, over: false };
}
