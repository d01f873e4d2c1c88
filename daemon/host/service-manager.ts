/**
 * Notifications to systemd about the service's state, as sd_notify(3) describes them: datagrams to the socket that NOTIFY_SOCKET names. Bun
 * has no such sockets: libc by FFI. Does nothing if no service manager requested them.
 */
import { dlopen, ptr } from "bun:ffi";
import { startInterval, stopTimer } from "../core/clock.ts";

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const SOCK_NONBLOCK = 0o4000;
/** sockaddr_un: a family, and a path of 108 bytes. */
const FAMILY_BYTES = 2;
const MAX_PATH_BYTES = 108;
/** Watchdog beats within the service's timeout: two may be late. */
const BEATS = 3;
/** systemd ends the service this long after its last request for more time. */
const EXTENSION_MS = 60_000;

export interface ServiceManager {
  /** The service answers. From now on the event loop reports regularly that it turns. */
  ready(): void;
  /** The service is being stopped. From now on only requests for more time are sent. */
  stopping(): void;
  /** Call when the current work, during start or stop, exceeds its time: requests more time until the returned function is called. */
  extend(ms: number): void;
  /** The current work, during start or stop, takes longer than it may: requests more time until the returned function is called. */
  takesLonger(): () => void;
}

const NOBODY: ServiceManager = {
  ready: () => {},
  stopping: () => {},
  extend: () => {},
  takesLonger: () => () => {},
};

/** `environment` has the variables that a service manager gives its services. */
export function findServiceManager(environment: Record<string, string | undefined> = process.env): ServiceManager {
  const { NOTIFY_SOCKET: address, WATCHDOG_USEC, WATCHDOG_PID = String(process.pid) } = environment;
  if (address === undefined || address === "") return NOBODY;
  const tell = teller(address);
  const watchdogMs = WATCHDOG_PID === String(process.pid) ? Number(WATCHDOG_USEC ?? 0) / 1000 : 0;
  const extend = (ms: number) => tell(`EXTEND_TIMEOUT_USEC=${Math.ceil(ms) * 1000}`);
  let beats: Timer | undefined;
  return {
    extend,
    ready: () => {
      tell("READY=1");
      if (watchdogMs > 0) beats = startInterval(() => tell("WATCHDOG=1"), watchdogMs / BEATS).unref();
    },
    stopping: () => {
      stopTimer(beats);
      tell("STOPPING=1");
    },
    takesLonger: () => {
      const again = () => extend(EXTENSION_MS);
      again();
      const extensions = startInterval(again, EXTENSION_MS / BEATS);
      return () => stopTimer(extensions);
    },
  };
}

/** A notification that cannot be sent is dropped: systemd then treats the service as silent. Throws if the address is invalid. */
function teller(address: string): (text: string) => void {
  const path = Buffer.from(address);
  if (path.length > MAX_PATH_BYTES) throw new Error(`NOTIFY_SOCKET=${address} is too long for a socket`);
  // An abstract name starts with a NUL, which is written as @.
  if (path[0] === 0x40) path[0] = 0;
  const to = Buffer.alloc(FAMILY_BYTES + path.length);
  to.writeUInt16LE(AF_UNIX);
  path.copy(to, FAMILY_BYTES);
  const { symbols: libc } = dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    sendto: { args: ["i32", "ptr", "u64", "i32", "ptr", "u32"], returns: "i64" },
  });
  const socket = libc.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  return (text) => {
    const bytes = Buffer.from(text);
    libc.sendto(socket, ptr(bytes), bytes.length, 0, ptr(to), to.length);
  };
}
