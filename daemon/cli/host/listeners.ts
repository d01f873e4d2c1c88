/**
 * Owners of listening ports on this host's loopback. While the daemon is down, any user of the host may listen on its port and would
 * receive the API key. Linux lists the owner of each listening socket in /proc/net/tcp (proc_pid_net(5)).
 */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";

const LISTENS = "0A";

export interface Listener {
  /** In the kernel's format: hexadecimal 32-bit words in the host's byte order. */
  address: string;
  port: number;
  uid: number;
}

/** The users among `listeners` whose sockets a client of this loopback address may reach. Pure. */
export function ownersOf(listeners: readonly Listener[], hostname: string, port: number): number[] {
  const reached = addressesOf(hostname);
  return listeners.filter((each) => each.port === port && reached.includes(each.address)).map(({ uid }) => uid);
}

/** All listening TCP sockets of this network namespace; empty if /proc is not readable. */
export function listeners(): Listener[] {
  return ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) => {
    try {
      return listening(readFileSync(file, "utf8"));
    } catch {
      return [];
    }
  });
}

/** The listening sockets in one of the kernel's tables. Pure. */
export function listening(table: string): Listener[] {
  return table.split("\n").flatMap((line) => {
    const [, local = "", , state, , , , uid] = line.trim().split(/\s+/);
    const [address = "", port = ""] = local.split(":");
    return state === LISTENS ? [{ address, port: Number.parseInt(port, 16), uid: Number(uid) }] : [];
  });
}

const ANY = ["00000000", "0".repeat(32)];
const LOCAL_6 = `${"0".repeat(24)}01000000`;

/** Bind addresses that a client of this hostname reaches. */
function addressesOf(hostname: string): string[] {
  if (hostname === "::1") return [LOCAL_6, ...ANY.slice(1)];
  if (isIP(hostname) !== 4) return [...addressesOf("127.0.0.1"), ...addressesOf("::1")];
  const bytes = hostname.split(".").map((byte) => Number(byte).toString(16).padStart(2, "0").toUpperCase());
  const own = bytes.reverse().join("");
  return [own, `0000000000000000FFFF0000${own}`, ...ANY];
}

/** Whether a URL's host is loopback; accepts the brackets of URL.hostname. */
export function isLoopback(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, "");
  return bare === "localhost" || bare === "::1" || (isIP(bare) === 4 && bare.startsWith("127."));
}
