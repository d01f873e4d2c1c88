/**
 * Owns telling systemd how the service is, as sd_notify(3) describes it: datagrams to the socket that NOTIFY_SOCKET names. Bun has no
 * such sockets: libc by FFI. Nothing where no service manager asked for it.
 */
import { dlopen, ptr } from "bun:ffi";
import { startInterval, stopTimer } from "../core/clock.ts";

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const SOCK_NONBLOCK = 0o4000;
/** sockaddr_un: a family, and a path of 108 bytes. */
const FAMILY_BYTES = 2;
const MOST_PATH_BYTES = 108;
/** Beats in the time after which the service counts as dead: two may be late. */
const BEATS = 3;
/** The service is ended so long after it has last said that it takes longer. */
const EXTENSION_MS = 60_000;

export interface ServiceManager {
  /** The service answers. From now on the event loop says regularly that it turns. */
  ready(): void;
  /** The service is being stopped. Nothing is said any more but that it takes longer. */
  stopping(): void;
  /** Extends the time to start or stop to this much from now. */
  extend(ms: number): void;
  /** What the service does now, on its way to its start or its end, takes longer than that may: until what is returned is called. */
  takesLonger(): () => void;
}

const NOBODY: ServiceManager = {
  ready: () => {},
  stopping: () => {},
  extend: () => {},
  takesLonger: () => () => {},
};

/** `environment` has what a service manager gives its services. */
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

/** What cannot be said is not: systemd then does what it does with a service that says nothing. Throws on an address that is none. */
function teller(address: string): (text: string) => void {
  const path = Buffer.from(address);
  if (path.length > MOST_PATH_BYTES) throw new Error(`NOTIFY_SOCKET=${address} is too long for a socket`);
  // An abstract name begins with a NUL, which is written as @.
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
