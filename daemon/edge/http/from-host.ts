/** Owns whether a request comes from the host itself, with nobody between who may ask for another. */

const LOOPBACK = /^(?:::ffff:)?127(?:\.\d{1,3}){3}$|^::1$/;
const OWN_NAME = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
/** What proxies add, each of them. */
const FORWARDED = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/**
 * By the address that it came from, the name that was asked for, which a proxy's client or a page of another site does not
 * give as the host's own, and what says that it was forwarded.
 */
export function isFromHost(address: string | null, hostname: string, headers: Headers): boolean {
  return (
    address !== null &&
    LOOPBACK.test(address) &&
    OWN_NAME.test(hostname) &&
    !FORWARDED.some((name) => headers.has(name))
  );
}
