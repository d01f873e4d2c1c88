/**
 * Owns the listener for other hosts, `cluster.listen`: only members are let in, who show the certificate that they joined with.
 * Bun checks that when a connection begins; so connections of a member that was removed end at once, with the server that took them.
 */
import type { Certificate } from "../../core/certificate.ts";
import { openListener, type RunningServer, type ServeOptions, type ServeTls } from "../listener.ts";
import { TLS_1_3_ONLY } from "./connection.ts";

export interface MembersListener {
  url: URL;
  /** Lets in these, and no others; connections of others end. They are certificates, as PEM. */
  admit(members: readonly string[]): void;
  /** Stops taking requests; resolves when those under way have ended, at most after `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/** Listens, for nobody at first when there are no members. `start` begins a Bun server with these options, merged over its own. */
export function openMembersListener(
  address: { hostname: string; port: number },
  { own, members }: { own: Certificate; members: readonly string[] },
  start: (options: ServeOptions) => RunningServer,
): MembersListener {
  // Without any Bun would believe the authorities that browsers believe: nobody but the host itself shows its own.
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
      const wanted = new Set(next);
      const isRemoved = [...admitted].some((each) => !wanted.has(each));
      if (!isRemoved && wanted.size === admitted.size) return;
      listener.use(tlsFor(wanted), isRemoved ? "ends" : "goes on");
      admitted = wanted;
    },
    stop: listener.stop,
  };
}
