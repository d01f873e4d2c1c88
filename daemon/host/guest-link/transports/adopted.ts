/**
 * Trial of the features of Bun that the kernel's transport requires: that Bun adopts a listening descriptor, which its types do not
 * declare, and exposes the descriptor of an accepted connection.
 */
import { dlopen } from "bun:ffi";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import type { SocketHandler, UnixSocketOptions } from "bun";
import { startTimer, stopTimer } from "../../../core/clock.ts";
import { check } from "../../files/libc.ts";
import { connectVsock, listenVsock, peerAddress, peerFamily } from "./vsock-socket.ts";

const AF_UNIX = 1;
const SOCK_STREAM_FLAGS = 1 | 0o2000000 | 0o4000;
const VMADDR_CID_LOCAL = 1;
/** The first of a range that no program uses. */
const TRIAL_PORT = 0x726f0000;
const TRIAL_PORTS = 0xffff;
/** Only a hang takes longer: an emulated, busy host needs seconds for work that is immediate elsewhere. */
const ANSWER_MS = 60_000;

const { symbols: libc } = dlopen("libc.so.6", {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  listen: { args: ["i32", "i32"], returns: "i32" },
});

/** Connects to an adopted listener. Resolves with the kernel's family of the connection that it accepted. */
export async function adoptedPeer(): Promise<"unix" | "other"> {
  const name = `\0roomd-${randomUUID()}`;
  const listening = check(libc.socket(AF_UNIX, SOCK_STREAM_FLAGS, 0), "socket");
  const address = Buffer.concat([Buffer.from([AF_UNIX, 0]), Buffer.from(name)]);
  check(libc.bind(listening, address, address.byteLength), "bind");
  check(libc.listen(listening, 1), "listen");
  const family = await accepted(listening, peerFamily, async () => {
    const client = await Bun.connect({ unix: name, socket: { data: () => {} } });
    return () => client.end();
  });
  return family === AF_UNIX ? "unix" : "other";
}

/** The same over vsock: the CID of the connected peer. Null if the kernel has no loopback of vsock. */
export async function loopbackPeer(): Promise<number | null> {
  if (!existsSync("/sys/module/vsock_loopback")) return null;
  const port = TRIAL_PORT + Math.floor(Math.random() * TRIAL_PORTS);
  const listening = listenVsock(port);
  if (listening === null) return null;
  return await accepted(
    listening,
    (descriptor) => peerAddress(descriptor)?.cid ?? null,
    async () => connectVsock(VMADDR_CID_LOCAL, port),
  );
}

/** Result of `look` for the connection that an adopted listener accepts. */
async function accepted<T>(
  listening: number,
  look: (descriptor: number) => T,
  connect: () => Promise<() => void>,
): Promise<T> {
  const found = Promise.withResolvers<T>();
  found.promise.catch(() => {});
  const socket: SocketHandler<undefined> = {
    open: (connection) => {
      const descriptor = "fd" in connection ? connection.fd : null;
      if (typeof descriptor === "number") found.resolve(look(descriptor));
      else found.reject(new Error("a connection does not expose its descriptor"));
      connection.end();
    },
    data: () => {},
  };
  const options: unknown = { fd: listening, socket };
  const listener = Bun.listen(options as UnixSocketOptions<undefined>);
  const late = startTimer(() => found.reject(new Error("an adopted listener accepts no connections")), ANSWER_MS);
  try {
    const disconnect = await connect();
    try {
      return await found.promise;
    } finally {
      disconnect();
    }
  } finally {
    stopTimer(late);
    listener.stop(true);
  }
}
