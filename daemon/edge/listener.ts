/**
 * The listening server across changes of its certificates. Bun's server keeps those it was started with (oven-sh/bun#43815), so new ones
 * need a new server, which replaces it on the port:
 *
 *     start(new)  both listen on the port (SO_REUSEPORT), new connections go to either
 *     old.stop()  the old one stops listening and closes idle connections; its requests, streams and WebSockets in progress
 *                 continue until they end, or are closed immediately if their peer is no longer admitted
 */
import { networkInterfaces } from "node:os";
import type { Server } from "bun";
import { orAfter } from "../core/concurrency/published.ts";
import type { Certificate } from "../core/config/certificate.ts";
import { errnoOf } from "../core/service-error.ts";

export const LOOPBACK_6 = "::1";

/** TLS options of a server. */
export interface ServeTls extends Certificate {
  ciphers?: string;
  secureOptions?: number;
  /** Certificates that clients may show, if a client certificate is required. */
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

/** The part of Bun's server that is used. */
export type RunningServer = Pick<Server<unknown>, "url" | "port" | "stop">;

/** Whether the connections of the former server continue or are closed. */
export type Former = "goes on" | "ends";

export interface Listener {
  url: URL;
  /** Uses `tls` for new connections. Throws, and keeps the old certificates, if Bun rejects it. */
  use(tls: ServeTls, former: Former): void;
  /** Stops accepting requests; resolves when the requests in progress have ended, after `graceMs` at the latest. */
  stop(graceMs: number): Promise<void>;
}

/** Attempts with port 0: another program may bind the port that the kernel has chosen before we do. */
const MAX_CHOICES = 8;

export interface ListenAddress {
  hostname: string;
  port: number;
  /**
   * Whether clients use the name `localhost`, which browsers resolve to [::1] first: the server listens there too, because any user of the
   * host could. For an IPv4 address.
   */
  byLocalhost?: boolean;
}

/** Another program listens on [::1] alone. */
export class LocalhostTaken extends Error {
  readonly code = "EADDRINUSE";

  constructor(port: number) {
    super(`another program listens on [${LOOPBACK_6}]:${port}`);
  }
}

/**
 * Listens, with TLS if `tls` is given. `start` starts a Bun server with these options, merged over its own. Throws an error with code
 * EADDRINUSE if another process listens on the address, including another daemon with TLS.
 */
export function openListener(
  { hostname, port: requestedPort, byLocalhost = false }: ListenAddress,
  tls: ServeTls | null,
  start: (options: ServeOptions) => RunningServer,
): Listener {
  const hostnames = byLocalhost && hasLoopback6() ? [hostname, LOOPBACK_6] : [hostname];
  if (tls !== null && requestedPort !== 0)
    for (const each of hostnames) assertFree({ hostname: each, port: requestedPort });
  const begin = (hostname: string, port: number, tls: ServeTls | null) =>
    start({ hostname, port, reusePort: tls !== null, ...(tls === null ? {} : { tls }) });
  let current = startFirst(() => beginAll(hostnames, requestedPort, tls, begin), requestedPort === 0 ? MAX_CHOICES : 1);
  const [{ url, port = requestedPort }] = current;
  const draining = new Set<RunningServer>();
  return {
    url: new URL(url),
    use: (next, former) => {
      const old = current;
      current = beginAll(hostnames, port, next, begin);
      for (const each of old) {
        draining.add(each);
        void each.stop(false).finally(() => draining.delete(each));
      }
      // Servers that were replaced earlier may still have connections.
      if (former === "ends") for (const each of draining) void each.stop(true);
    },
    stop: async (graceMs) => {
      const servers = [...current, ...draining];
      await orAfter(Promise.all(servers.map((server) => server.stop(false))), graceMs, null);
      await Promise.all(servers.map((server) => server.stop(true)));
    },
  };
}

type Servers = [RunningServer, ...RunningServer[]];

/** Starts one server for each name, at the same port; all or none. */
function beginAll(
  [hostname, ...others]: readonly string[],
  requestedPort: number,
  tls: ServeTls | null,
  begin: (hostname: string, port: number, tls: ServeTls | null) => RunningServer,
): Servers {
  const servers: Servers = [begin(String(hostname), requestedPort, tls)];
  const { port = requestedPort } = servers[0];
  try {
    for (const each of others) servers.push(begin(each, port, tls));
    return servers;
  } catch (error) {
    for (const each of servers) void each.stop(true);
    throw errnoOf(error) === "EADDRINUSE" ? new LocalhostTaken(port) : error;
  }
}

const hasLoopback6 = () =>
  Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === LOOPBACK_6));

function startFirst<T>(start: () => T, choices: number): T {
  try {
    return start();
  } catch (error) {
    if (errnoOf(error) !== "EADDRINUSE" || choices <= 1) throw error;
    return startFirst(start, choices - 1);
  }
}

/** SO_REUSEPORT would let two daemons share a port silently; a bind without it detects that. */
function assertFree({ hostname, port }: { hostname: string; port: number }): void {
  Bun.listen({ hostname, port, socket: { data: () => {} } }).stop(true);
}
