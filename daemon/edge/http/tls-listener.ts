/**
 * Owns the listening server while its certificate changes. Bun's server keeps the certificate it was started with
 * (oven-sh/bun#43815), so a new one needs a new server, which takes over the port:
 *
 *   start(new)  both listen on the port (SO_REUSEPORT), new connections go to either
 *   old.stop()  the old one stops listening and closes idle connections; requests, streams and WebSockets under way
 *               go on in it until they end
 */
import type { Server } from "bun";
import type { Certificate } from "./certificate.ts";

/** Of TLS 1.2 only suites that authenticate what they encrypt, with keys that nobody has afterwards (RFC 9325, 4.2). */
const TLS_1_2_CIPHERS = ["ECDSA", "RSA"]
  .flatMap((key) =>
    ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"].map((suite) => `ECDHE-${key}-${suite}`),
  )
  .join(":");

export interface ServeOptions {
  hostname: string;
  port: number;
  reusePort: boolean;
  tls?: Certificate & { ciphers: string };
}

/** What is needed of Bun's server. */
export type RunningServer = Pick<Server<unknown>, "url" | "port" | "stop">;

export interface Listener {
  url: URL;
  /** Takes a new certificate for new connections. Throws, and keeps the old one, when Bun refuses it. */
  useCertificate(certificate: Certificate): void;
  /** Stops taking requests; resolves when those under way have ended, at most after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Listens, with TLS when there is a certificate. `start` begins a Bun server with these options, merged over its own.
 * Throws an error with code EADDRINUSE when anything listens on the address, another daemon with TLS included.
 */
export function openListener(
  address: { hostname: string; port: number },
  certificate: Certificate | null,
  start: (options: ServeOptions) => RunningServer,
): Listener {
  if (certificate !== null && address.port !== 0) assertFree(address);
  const options = (port: number, tls: Certificate | null): ServeOptions => ({
    hostname: address.hostname,
    port,
    reusePort: tls !== null,
    ...(tls === null ? {} : { tls: { cert: tls.cert, key: tls.key, ciphers: TLS_1_2_CIPHERS } }),
  });
  let current = start(options(address.port, certificate));
  const draining = new Set<RunningServer>();
  return {
    url: new URL(current.url),
    useCertificate: (next) => {
      const old = current;
      current = start(options(old.port ?? address.port, next));
      draining.add(old);
      void old.stop(false).finally(() => draining.delete(old));
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

/** SO_REUSEPORT would let two daemons share a port without a word; a socket without it finds that out. */
function assertFree({ hostname, port }: { hostname: string; port: number }): void {
  Bun.listen({ hostname, port, socket: { data: () => {} } }).stop(true);
}
