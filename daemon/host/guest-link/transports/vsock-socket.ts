/** AF_VSOCK sockets, which Bun does not support: libc by FFI. sockaddr_vm is described in vsock(7). */
import { dlopen, ptr } from "bun:ffi";
import { check, SystemError } from "../../files/libc.ts";

const AF_VSOCK = 40;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0o2000000;
const SOCK_NONBLOCK = 0o4000;
const VMADDR_CID_ANY = 0xffffffff;
const SOCKADDR_VM_BYTES = 16;
const BACKLOG = 128;

const { symbols: libc } = dlopen("libc.so.6", {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  listen: { args: ["i32", "i32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
  getpeername: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
});

/** A listening AF_VSOCK socket on `port`, for guests of every CID; null when the port is taken. Throws SystemError. */
export function listenVsock(port: number): number | null {
  const fd = libc.socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) throw new Error("this kernel has no AF_VSOCK: load the module vhost_vsock");
  const address = addressOf(VMADDR_CID_ANY, port);
  try {
    check(libc.bind(fd, ptr(address), SOCKADDR_VM_BYTES), `bind to vsock port ${port}`);
    check(libc.listen(fd, BACKLOG), `listen on vsock port ${port}`);
    return fd;
  } catch (error) {
    libc.close(fd);
    if (error instanceof SystemError && error.code === "EADDRINUSE") return null;
    throw error;
  }
}

/** Connects without waiting; the returned function closes the connection. Throws SystemError. */
export function connectVsock(cid: number, port: number): () => void {
  const fd = check(libc.socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket");
  // A connection in progress is not an error; a failed one is never accepted.
  libc.connect(fd, ptr(addressOf(cid, port)), SOCKADDR_VM_BYTES);
  return () => void libc.close(fd);
}

function addressOf(cid: number, port: number): Uint8Array {
  const address = new Uint8Array(SOCKADDR_VM_BYTES);
  const view = new DataView(address.buffer);
  view.setUint16(0, AF_VSOCK, true);
  view.setUint32(4, port, true);
  view.setUint32(8, cid, true);
  return address;
}

/**
 * Address of the guest at the other end. The CID is set by the host kernel, the port by the guest kernel: if a guest's kernel is not
 * subverted, its processes without CAP_NET_BIND_SERVICE have no port below RESERVED_PORTS.
 */
export function peerAddress(fd: number): { cid: number; port: number } | null {
  const peer = peerOf(fd);
  if (peer?.getUint16(0, true) !== AF_VSOCK) return null;
  return { cid: peer.getUint32(8, true), port: peer.getUint32(4, true) };
}

/** The address family of a connection; null if absent. */
export function peerFamily(fd: number): number | null {
  return peerOf(fd)?.getUint16(0, true) ?? null;
}

function peerOf(fd: number): DataView | null {
  const address = new Uint8Array(SOCKADDR_VM_BYTES);
  const length = new Uint32Array([SOCKADDR_VM_BYTES]);
  if (libc.getpeername(fd, ptr(address), ptr(length)) !== 0) return null;
  return new DataView(address.buffer);
}
