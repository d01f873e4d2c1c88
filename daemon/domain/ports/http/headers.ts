/**
 * Rewriting of headers between client and server: hop-by-hop headers and our secrets are removed, and addresses are translated for the
 * reader. A server in a guest sees itself at localhost, with its port and without a prefix.
 */
import { PORT_TOKEN_HEADER } from "../../../../shared/api/ports.ts";
import { HOP_BY_HOP } from "../../../wire/http1/headers.ts";
import type { PortAddress } from "./place.ts";
import { foreignCookies, hasSecret, isOwnCookie } from "./secrets.ts";

/** Set by us, or headers of the connection that ended here. */
const NOT_ASKED_ON = new Set([
  ...HOP_BY_HOP,
  "host",
  "content-length",
  "expect",
  "forwarded",
  PORT_TOKEN_HEADER,
  "cookie",
]);
const NOT_ANSWERED_ON = new Set([...HOP_BY_HOP, "content-length", "set-cookie", "location", "content-location"]);
/** Headers for a whole origin, which the application shares in path mode. */
const OF_THE_ORIGIN = new Set([
  "alt-svc",
  "clear-site-data",
  "nel",
  "origin-agent-cluster",
  "report-to",
  "reporting-endpoints",
  "service-worker-allowed",
  "strict-transport-security",
]);
/** In path mode, pages of all ports and of the API have one origin: without allow-same-origin each page is isolated. */
export const PATH_MODE_POLICY =
  "sandbox allow-downloads allow-forms allow-modals allow-pointer-lock allow-popups allow-presentation allow-scripts";

export interface Client {
  ip: string | null;
}

/** The Host header sent to the server. */
export function innerHost(port: number): string {
  return port === 80 ? "localhost" : `localhost:${port}`;
}

/**
 * The headers of a request as the server in the guest gets them. Servers compare `Origin` with `Host` (Vite, webpack-dev-server, Jupyter,
 * Django) or with `X-Forwarded-Host` and `-Proto` if these are present (Rails, React Router). So a request with an Origin rewritten to the
 * server's own has neither. `socket` keeps the headers of a WebSocket handshake, rewritten for the server.
 */
export function headersForServer(
  headers: Headers,
  place: PortAddress,
  port: number,
  client: Client,
  socket: readonly [string, string][] = [],
): [string, string][] {
  const dropped = new Set((headers.get("connection") ?? "").split(",").map((each) => each.trim().toLowerCase()));
  const kept: [string, string][] = [["host", innerHost(port)]];
  const origin = headers.get("origin");
  const isTurned = origin !== null && inward(origin, place, port) !== origin;
  for (const [name, value] of headers) {
    if (NOT_ASKED_ON.has(name) || dropped.has(name) || name.startsWith("x-forwarded-")) continue;
    if (name.startsWith("sec-websocket-") || hasSecret(value)) continue;
    kept.push([name, name === "origin" || name === "referer" ? inward(value, place, port) : value]);
  }
  const cookies = foreignCookies(headers.get("cookie") ?? "");
  if (cookies) kept.push(["cookie", cookies]);
  if (client.ip !== null) kept.push(["x-forwarded-for", client.ip]);
  if (!isTurned) kept.push(["x-forwarded-host", place.host], ["x-forwarded-proto", place.scheme]);
  if (place.prefix !== "") kept.push(["x-forwarded-prefix", place.prefix]);
  return [...kept, ...(socket.length > 0 ? socket : ([["connection", "close"]] as const))].map(([n, v]) => [n, v]);
}

/** Never throws: headers that have become invalid are left out. */
export function headersForClient(answered: readonly [string, string][], place: PortAddress, port: number): Headers {
  const headers = new Headers();
  const dropped = new Set(
    answered.filter(([name]) => name === "connection").flatMap(([, value]) => value.toLowerCase().split(/\s*,\s*/)),
  );
  for (const [name, value] of answered) {
    if (NOT_ANSWERED_ON.has(name) || dropped.has(name)) continue;
    if (place.mode === "path" && OF_THE_ORIGIN.has(name)) continue;
    const filtered = name === "clear-site-data" ? withoutCookies(value) : value;
    if (filtered !== null) headers.append(name, filtered);
  }
  for (const [name, value] of answered) {
    if (name === "location" || name === "content-location") headers.set(name, outward(value, place, port));
    if (name !== "set-cookie") continue;
    const cookie = cookieForClient(value, place);
    if (cookie !== null) headers.append(name, cookie);
  }
  if (place.mode === "path") {
    headers.append("content-security-policy", PATH_MODE_POLICY);
    if (!headers.has("referrer-policy")) headers.set("referrer-policy", "same-origin");
  }
  return headers;
}

/** Clearing cookies would affect all hosts below the domain, and thus the tokens of other ports. */
function withoutCookies(types: string): string | null {
  const kept = types.split(",").map((each) => (each.trim() === '"*"' ? '"cache", "storage"' : each.trim()));
  return kept.filter((each) => each !== '"cookies"').join(", ") || null;
}

/** Rewrites our own address in a header to the server's; other addresses are unchanged. */
function inward(value: string, place: PortAddress, port: number): string {
  const own = `${place.scheme}://${place.host}`;
  if (value !== own && !value.startsWith(`${own}/`)) return value;
  const path = value.slice(own.length);
  const isWithin = path === place.prefix || path.startsWith(`${place.prefix}/`);
  return `http://${innerHost(port)}${isWithin ? path.slice(place.prefix.length) : path === "" ? "" : "/"}`;
}

/** Names that a server may use for its own listening address. */
const OWN_NAMES = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]"];

/** A server's location as the client's URL. A location that the server derived from X-Forwarded-Host and -Prefix counts as its own too. */
function outward(value: string, place: PortAddress, port: number): string {
  const isPath = value.startsWith("/") && !value.startsWith("//");
  if (isPath) return isBelow(value, place.prefix) ? value : place.prefix + value;
  const url = URL.parse(value.startsWith("//") ? `${place.scheme}:${value}` : value);
  if (!url || !["http:", "https:"].includes(url.protocol)) return value;
  const isInner = OWN_NAMES.includes(url.hostname) && portOf(url) === port;
  if (!isInner && url.host !== hostOf(place)) return value;
  const prefix = !isInner && isBelow(url.pathname, place.prefix) ? "" : place.prefix;
  return `${place.scheme}://${place.host}${prefix}${url.pathname}${url.search}${url.hash}`;
}

/** Normalized as in a URL: lower case, without the default port of the scheme. */
function hostOf({ scheme, host }: PortAddress): string | undefined {
  return URL.parse(`${scheme}://${host}`)?.host;
}

/** Whether a path of a URL is already below the prefix. The label in the prefix cannot be guessed, so it is no path of the server's own. */
function isBelow(path: string, prefix: string): boolean {
  return prefix !== "" && (path === prefix || ["/", "?", "#"].some((next) => path.startsWith(prefix + next)));
}

function portOf(url: URL): number {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "https:" ? 443 : 80;
}

/** Limits a cookie to the port's host and path; null for a cookie name of the service. */
function cookieForClient(cookie: string, place: PortAddress): string | null {
  const [pair = "", ...attributes] = cookie.split(";");
  if (isOwnCookie(pair)) return null;
  let path = "/";
  const kept = attributes.filter((each) => {
    const [name = "", value = ""] = each.split("=");
    const word = name.trim().toLowerCase();
    if (word === "path" && value.trim().startsWith("/")) path = value.trim();
    return word !== "domain" && word !== "path";
  });
  return [pair, ...kept, ` Path=${place.prefix}${path}`].join(";");
}
