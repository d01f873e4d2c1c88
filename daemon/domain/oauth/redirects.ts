/**
 * Owns where an application may be sent back to: what it may name, and whether what it asks for is what it has named. A loopback
 * address is the same whatever its port (RFC 8252, 7.3): programs take the port that is free.
 */
import { Refusal } from "./refusal.ts";

const LOOPBACK: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];
/** What a browser would carry out, or read from the person's own disk. */
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
  // What a system opens or sends by itself.
  "intent:",
  "mailto:",
  "tel:",
  "sms:",
  "shell:",
  "ldap:",
  "search-ms:",
  "search:",
];
/** The same, a family of them. */
const NEVER_WITH = "ms-";
const MOST_CHARACTERS = 2048;

/** Where it leads, by what people judge it: a host, or the scheme of a program. */
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
  const refuse = (what: string) => new Refusal("invalid_redirect_uri", what);
  if (typeof uri !== "string" || uri.length > MOST_CHARACTERS) {
    throw refuse(`A redirect URI is text of ${MOST_CHARACTERS} characters at most.`);
  }
  const url = URL.parse(uri);
  if (!url) throw refuse("A redirect URI must be a whole URL.");
  if (url.hash !== "" || uri.includes("#")) throw refuse("A redirect URI has no #.");
  if (url.username !== "" || url.password !== "") throw refuse("A redirect URI names no user.");
  if (NEVER.includes(url.protocol) || url.protocol.startsWith(NEVER_WITH))
    throw refuse(`A redirect URI cannot begin with ${url.protocol}`);
  if (url.protocol === "http:" && !LOOPBACK.includes(url.hostname)) {
    throw refuse("A redirect URI is https, or http to the loopback address.");
  }
  return uri;
}

const isWeb = ({ protocol }: URL) => protocol === "http:" || protocol === "https:";

/** Whether one of those that were named is what is asked for. */
export function isNamed(named: readonly string[], asked: string): boolean {
  return named.some(
    (each) => each === asked || (isLoopback(each) && isLoopback(asked) && portless(each) === portless(asked)),
  );
}

function portless(uri: string): string {
  const url = new URL(uri);
  url.port = "";
  return url.href;
}
