/**
 * Whether a request comes from the host itself, without an intermediary that may act for another client. Fails closed: if clients reach the
 * service by another host's name, a forwarder exists, and it need not identify itself.
 */

const LOOPBACK = /^(?:::ffff:)?127(?:\.\d{1,3}){3}$|^::1$/;
const OWN_NAME = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
/** Headers that proxies add. */
const FORWARDED = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/** Whether a proxy has forwarded the request, by its headers. */
export const isForwarded = (headers: Headers): boolean => FORWARDED.some((name) => headers.has(name));

export interface Origin {
  /** The peer's address; null if unknown. */
  address: string | null;
  /** The requested name, without a port. */
  hostname: string;
  headers: Headers;
}

export type IsFromHost = (origin: Origin) => boolean;

/** `publicUrl` is the URL of the service for clients. */
export function makeIsFromHost(publicUrl: string): IsFromHost {
  if (!OWN_NAME.test(new URL(publicUrl).hostname)) return () => false;
  return ({ address, hostname, headers }) =>
    address !== null &&
    LOOPBACK.test(address) &&
    // A proxy's client, or a page of another site, does not use the host's own name.
    OWN_NAME.test(hostname) &&
    // A proxy that opens a connection for each request, as nginx does by default, may use that name itself.
    !/\bclose\b/i.test(headers.get("connection") ?? "") &&
    !isForwarded(headers);
}
