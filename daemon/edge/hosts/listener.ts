/**
 * The listener for other hosts, `cluster.listen`: mutual TLS admits only members, by the certificate that they joined with. Bun checks it
 * in the handshake only; so connections of a removed member are closed immediately, with the server that accepted them.
 */
import type { Certificate } from "../../core/config/certificate.ts";
import { openListener, type RunningServer, type ServeOptions, type ServeTls } from "../listener.ts";
import { TLS_1_3_ONLY } from "./connection.ts";

export interface MembersListener {
  url: URL;
  /** Admits these members and no others; connections of others are closed. The certificates are PEM. */
  admit(members: readonly string[]): void;
  /** Stops accepting requests; resolves when the requests in progress have ended, after `graceMs` at the latest. */
  stop(graceMs: number): Promise<void>;
}

/** Listens; without members it admits no peer yet. `start` starts a Bun server with these options, merged over its own. */
export function openMembersListener(
  address: { hostname: string; port: number },
  { own, members }: { own: Certificate; members: readonly string[] },
  start: (options: ServeOptions) => RunningServer,
): MembersListener {
  // With an empty list Bun would trust the authorities that browsers trust. Only this host itself can show its own certificate.
  const tlsFor = (admitted: ReadonlySet<string>): ServeTls => ({
    cert: own.cert,
    key: own.key,
    ca: admitted.size === 0 ? [own.cert] : [...admitted],
    requestCert: true,
    rejectUnauthorized: true,
    secureOptions: TLS_1_3_ONLY,
  });
  let admitted: ReadonlySet<string> = new Set(members);
  const listener = openListener(address, tlsFor(admitted), start);
  return {
    url: listener.url,
    admit: (next) => {
      const requested = new Set(next);
      const isRemoved = [...admitted].some((each) => !requested.has(each));
      if (!isRemoved && requested.size === admitted.size) return;
      listener.use(tlsFor(requested), isRemoved ? "ends" : "goes on");
      admitted = requested;
    },
    stop: listener.stop,
  };
}
