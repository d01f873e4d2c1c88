/**
 * Redirect URIs: which ones an application may register, and whether a requested one is registered. The port of a loopback address is
 * ignored (RFC 8252, 7.3): programs use any free port.
 */
import { Refusal } from "./refusal.ts";

const LOOPBACK: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];
/** Schemes that a browser would execute, or read from the person's own disk. */
const NEVER: readonly string[] = [
  "javascript:",
  "data:",
  "file:",
  "blob:",
  "vbscript:",
  "about:",
  "view-source:",
  "ws:",
  "wss:",
  "ftp:",
  // Schemes that a system opens or sends automatically.
  "intent:",
  "mailto:",
  "tel:",
  "sms:",
  "shell:",
  "ldap:",
  "search-ms:",
  "search:",
];
/** Prefix of further schemes of this type. */
const NEVER_WITH = "ms-";
const MAX_CHARACTERS = 2048;

/** Destination by which people judge a redirect: a host, or a program's scheme. */
export function placeOf(redirectUri: string): string {
  const url = URL.parse(redirectUri);
  if (!url) return redirectUri;
  return isWeb(url) ? url.host : `${url.protocol}//${url.host}`;
}

export function isLoopback(redirectUri: string): boolean {
  const url = URL.parse(redirectUri);
  return url !== null && url.protocol === "http:" && LOOPBACK.includes(url.hostname);
}

/** Throws invalid_redirect_uri. */
export function requireRedirectUri(uri: unknown): string {
  const refuse = (detail: string) => new Refusal("invalid_redirect_uri", detail);
  if (typeof uri !== "string" || uri.length > MAX_CHARACTERS) {
    throw refuse(`A redirect URI must be a string of ${MAX_CHARACTERS} characters at most.`);
  }
  const url = URL.parse(uri);
  if (!url) throw refuse("A redirect URI must be an absolute URL.");
  if (url.hash !== "" || uri.includes("#")) throw refuse("A redirect URI must have no fragment (#).");
  if (url.username !== "" || url.password !== "") throw refuse("A redirect URI must have no user name.");
  if (NEVER.includes(url.protocol) || url.protocol.startsWith(NEVER_WITH))
    throw refuse(`A redirect URI cannot begin with ${url.protocol}`);
  if (url.protocol === "http:" && !LOOPBACK.includes(url.hostname)) {
    throw refuse("A redirect URI must be https, or http to a loopback address.");
  }
  return uri;
}

const isWeb = ({ protocol }: URL) => protocol === "http:" || protocol === "https:";

/** Whether the requested URI is one of the registered ones. */
export function isNamed(named: readonly string[], requested: string): boolean {
  return named.some(
    (each) =>
      each === requested || (isLoopback(each) && isLoopback(requested) && portless(each) === portless(requested)),
  );
}

function portless(uri: string): string {
  const url = new URL(uri);
  url.port = "";
  return url.href;
}
