/**
 * Response headers for browsers: a policy against foreign content and framing, and the cookies. And request headers of browsers: whether a
 * request comes from a page of ours.
 */
import { hashSource } from "../../core/hash-source.ts";

/** Cookie names. Ports receive none with this prefix, and may set none. */
const COOKIES = { session: "roomd", browser: "roomd-browser", asked: "roomd-asked", visitor: "roomd-visitor" } as const;
/** Prefix by which no port's page on a subdomain can set or read the cookie. */
const SECURE = "__Host-";
const DAY_SECONDS = 86_400;
const LIFE_SECONDS = {
  session: 90 * DAY_SECONDS,
  browser: 400 * DAY_SECONDS,
  asked: 600,
  visitor: DAY_SECONDS,
} as const;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * The browser stores the session, a mark of an earlier sign-in, the application's request during a sign-in, and an ID of the browser until
 * a sign-in.
 */
export type Cookie = keyof typeof COOKIES;

/**
 * For every page with this style and script. `leadsOut`: the response to its form redirects elsewhere, which browsers check against
 * `form-action`.
 */
export function pageHeaders(style: string, script: string, leadsOut = false): Record<string, string> {
  return headersBy([
    `style-src ${hashSource(style)}`,
    `script-src ${hashSource(script)}`,
    "img-src 'self' data:",
    ...(leadsOut ? [] : ["form-action 'self'"]),
  ]);
}

/** For the page that the hub runs in. `nonce`: required on styles that its programs add. */
export function hubHeaders(nonce: string): Record<string, string> {
  return headersBy([
    `style-src 'self' 'nonce-${nonce}'`,
    "script-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data: blob:",
    "form-action 'self'",
  ]);
}

function headersBy(policy: readonly string[]): Record<string, string> {
  const all = [
    "default-src 'none'",
    ...policy,
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ];
  return {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": all.join("; "),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
  };
}

const nameOf = (cookie: Cookie, isSecure: boolean) => `${isSecure ? SECURE : ""}${COOKIES[cookie]}`;

/** A cookie's value; null if absent, or if there are several of its name. */
export function cookieIn(headers: Headers, cookie: Cookie, isSecure: boolean): string | null {
  const sent = headers.get("cookie");
  if (sent === null) return null;
  const own = `${nameOf(cookie, isSecure)}=`;
  let value: string | null = null;
  for (const part of sent.split(";")) {
    const pair = part.trim();
    if (!pair.startsWith(own)) continue;
    if (value !== null) return null;
    value = pair.slice(own.length);
  }
  return value;
}

/** The colours that the user has chosen in this browser, stored by a page's script; null without a choice. */
export const coloursIn = (headers: Headers): string | null =>
  /(?:^|;\s*)roomd-colours=(light|dark)(?:;|$)/.exec(headers.get("cookie") ?? "")?.[1] ?? null;

/** `value` null deletes the cookie. */
export function setCookie(cookie: Cookie, value: string | null, isSecure: boolean): string {
  const life = `Max-Age=${value === null ? 0 : LIFE_SECONDS[cookie]}`;
  return `${nameOf(cookie, isSecure)}=${value ?? ""}; Path=/; HttpOnly; SameSite=Lax; ${life}${isSecure ? "; Secure" : ""}`;
}

/**
 * Whether a page of the service makes the request. Browsers open WebSockets without Sec-Fetch-Site: their Origin is the service's, or that
 * of the requested host, such as another loopback name or a forwarded port. Current browsers send one of the two headers.
 */
export function isFromOurPage(headers: Headers, ours: string): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const origin = headers.get("origin");
  return origin === ours || origin === `${new URL(ours).protocol}//${headers.get("host")}`;
}

/** Whether it is a navigation to a page, from any site: by a link, or by its address. It reads, and changes nothing. */
export function isVisit(method: string, headers: Headers): boolean {
  return (
    method === "GET" && headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-dest") === "document"
  );
}

/** Whether passwords and cookies reach the URL confidentially: over TLS, or within the host. */
export function isTrustworthy({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || LOOPBACK.test(hostname);
}
