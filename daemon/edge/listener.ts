/**
 * Owns the listening server while its certificates change. Bun's server keeps those it was started with
 * (oven-sh/bun#43815), so new ones need a new server, which takes over the port:
 *
 *   start(new)  both listen on the port (SO_REUSEPORT), new connections go to either
 *   old.stop()  the old one stops listening and closes idle connections; requests, streams and WebSockets under way
 *               go on in it until they end, or end at once where whoever they came from is not let in any more
 */
import type { Server } from "bun";
import type { Certificate } from "../core/certificate.ts";
import { errnoOf } from "../core/service-error.ts";

/** With what a server answers to TLS. */
export interface ServeTls extends Certificate {
  ciphers?: string;
  secureOptions?: number;
  /** Who is let in, where clients must show a certificate. */
  ca?: string[];
  requestCert?: boolean;
  rejectUnauthorized?: boolean;
}

export interface ServeOptions {
  hostname: string;
  port: number;
  reusePort: boolean;
  tls?: ServeTls;
}

/** What is needed of Bun's server. */
export type RunningServer = Pick<Server<unknown>, "url" | "port" | "stop">;

/** What becomes of the connections that the former server has. */
export type Former = "goes on" | "ends";

export interface Listener {
  url: URL;
  /** Takes these for new connections. Throws, and keeps the old ones, when Bun refuses them. */
  use(tls: ServeTls, former: Former): void;
  /** Stops taking requests; resolves when those under way have ended, at most after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/** Of port 0: another program may listen on what the kernel has chosen, before we do. */
const MOST_CHOICES = 8;

/**
 * Listens, with TLS where `tls` says how. `start` begins a Bun server with these options, merged over its own.
 * Throws an error with code EADDRINUSE when anything listens on the address, another daemon with TLS included.
 */
export function openListener(
  address: { hostname: string; port: number },
  tls: ServeTls | null,
  start: (options: ServeOptions) => RunningServer,
): Listener {
  if (tls !== null && address.port !== 0) assertFree(address);
  const options = (port: number, tls: ServeTls | null): ServeOptions => ({
    hostname: address.hostname,
    port,
    reusePort: tls !== null,
    ...(tls === null ? {} : { tls }),
  });
  let current = startFirst(() => start(options(address.port, tls)), address.port === 0 ? MOST_CHOICES : 1);
  const draining = new Set<RunningServer>();
  return {
    url: new URL(current.url),
    use: (next, former) => {
      const old = current;
      current = start(options(old.port ?? address.port, next));
      draining.add(old);
      void old.stop(false).finally(() => draining.delete(old));
      // Those before the last have connections from before too.
      if (former === "ends") for (const each of draining) void each.stop(true);
    },
    stop: async (graceMs) => {
      const servers = [current, ...draining];
      const grace = Promise.withResolvers<void>();
      const timer = setTimeout(grace.resolve, graceMs);
      await Promise.race([Promise.all(servers.map((server) => server.stop(false))), grace.promise]);
      clearTimeout(timer);
      await Promise.all(servers.map((server) => server.stop(true)));
    },
  };
}

function startFirst(start: () => RunningServer, choices: number): RunningServer {
  try {
    return start();
  } catch (error) {
    if (errnoOf(error) !== "EADDRINUSE" || choices <= 1) throw error;
    return startFirst(start, choices - 1);
  }
}

/** SO_REUSEPORT would let two daemons share a port without a word; a socket without it finds that out. */
function assertFree({ hostname, port }: { hostname: string; port: number }): void {
  Bun.listen({ hostname, port, socket: { data: () => {} } }).stop(true);
}
