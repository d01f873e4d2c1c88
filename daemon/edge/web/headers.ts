/**
 * Owns what the web's answers say to browsers: a policy that lets nothing in from elsewhere and no page frame ours, and the session's
 * cookie. And what browsers say to us: whether a request comes from a page of ours.
 */
import { createHash } from "node:crypto";

/** Beneath both no port's page can set or read it: ports are never given it, and may set none of its name. */
const COOKIE = "roomd";
const SECURE_COOKIE = "__Host-roomd";
const COOKIE_SECONDS = 90 * 86_400;

const digestOf = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Of every page, with this style and script in it. */
export function pageHeaders(style: string, script: string): Record<string, string> {
  const policy = [
    "default-src 'none'",
    `style-src ${digestOf(style)}`,
    `script-src ${digestOf(script)}`,
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ];
  return {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": policy.join("; "),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
  };
}

const nameOf = (isSecure: boolean) => (isSecure ? SECURE_COOKIE : COOKIE);

/** The session's secret in a Cookie header; null without one, and where there are several. */
export function sessionIn(headers: Headers, isSecure: boolean): string | null {
  const own = `${nameOf(isSecure)}=`;
  const found = (headers.get("cookie") ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(own));
  return found.length === 1 ? (found[0]?.slice(own.length) ?? null) : null;
}

/** `secret` null: the browser forgets it. */
export function sessionCookie(secret: string | null, isSecure: boolean): string {
  const life = `Max-Age=${secret === null ? 0 : COOKIE_SECONDS}`;
  return `${nameOf(isSecure)}=${secret ?? ""}; Path=/; HttpOnly; SameSite=Lax; ${life}${isSecure ? "; Secure" : ""}`;
}

/** Whether a page of ours makes the request. Who sends neither header is no browser of today, and has no cookie of ours to bring. */
export function isFromOurPage(headers: Headers, origin: string): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  return headers.get("origin") === origin;
}

/** Whether somebody goes to a page, from wherever: by a link, or by its address. It shows, and changes nothing. */
export function isVisit(method: string, headers: Headers): boolean {
  return (
    method === "GET" && headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-dest") === "document"
  );
}
