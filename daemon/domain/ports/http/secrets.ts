/** Keeps our secrets from the servers in guests: API keys wherever they occur, and everything about the port's token. */
import { PORT_TOKEN_COOKIE, PORT_TOKEN_QUERY } from "../../../../shared/api/ports.ts";
import { AFTER_PREFIX, TICKET_PREFIXES } from "../../../core/call/tickets.ts";
import type { PortAddress } from "./place.ts";

/** API keys, operator keys, OAuth credentials; the tokens of ports and SSH; tickets. */
const SECRET = new RegExp(
  [
    "\\bkey-[0-9A-Za-z]{43}\\b",
    "\\bo(?:ac|at|rt|dc)-[\\w-]{43}",
    "\\b(?:ptk|sat)_[\\w-]{43}",
    `\\b(?:${TICKET_PREFIXES.join("|")})${AFTER_PREFIX}`,
  ].join("|"),
);
/** Cookie names reserved for the service. */
const OWN_COOKIE = /^(?:__(?:host|secure)-)?roomd/i;

/** Whether a header's value contains a secret of the service, also in Basic credentials. */
export function hasSecret(value: string): boolean {
  if (SECRET.test(value)) return true;
  const [, basic] = /^\s*basic\s+([A-Za-z0-9+/=_-]+)\s*$/i.exec(value) ?? [];
  return basic !== undefined && SECRET.test(Buffer.from(basic, "base64").toString("latin1"));
}

/** `pair` is `name=value`. Browsers send a pair without a name as its value alone, which may look like another pair. */
export function isOwnCookie(pair: string): boolean {
  return OWN_COOKIE.test(pair.replace(/^[\s=]+/, ""));
}

/** The Cookie header without the service's own, or null if no cookie remains. */
export function foreignCookies(header: string): string | null {
  const kept = header.split(";").filter((each) => !isOwnCookie(each) && !hasSecret(each));
  return kept.length === 0 ? null : kept.map((each) => each.trim()).join("; ");
}

/** Cookie of a port's token. The prefix makes browsers reject it from other hosts, even below the same domain. */
export function tokenCookieOf({ mode }: Pick<PortAddress, "mode">): string {
  return mode === "host" ? `__Host-${PORT_TOKEN_COOKIE}` : PORT_TOKEN_COOKIE;
}

/** The port's token in a Cookie header, or null. */
export function tokenInCookies(header: string | null, place: Pick<PortAddress, "mode">): string | null {
  for (const each of header?.split(";") ?? []) {
    const at = each.indexOf("=");
    if (each.slice(0, Math.max(at, 0)).trim() === tokenCookieOf(place)) return each.slice(at + 1).trim();
  }
  return null;
}

/** Splits a query into the port's token and the rest, without parameters that contain secrets of the service; the rest is unchanged. */
export function splitQuery(search: string): { search: string; token: string | null } {
  if (search.length < 2) return { search: "", token: null };
  let token: string | null = null;
  const kept = search
    .slice(1)
    .split("&")
    .filter((part) => {
      const [name = "", ...rest] = part.split("=");
      const value = decoded(rest.join("="));
      if (decoded(name) === PORT_TOKEN_QUERY) {
        token ??= value;
        return false;
      }
      return !hasSecret(value) && !hasSecret(decoded(name));
    });
  return { search: kept.length === 0 ? "" : `?${kept.join("&")}`, token };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}
