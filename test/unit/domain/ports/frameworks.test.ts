/**
 * The checks of Origin that frameworks make, as their sources have them, on the headers that a server in a guest gets. The application's
 * own pages pass every one of them without an option of the port; pages of others pass none.
 */
import { describe, expect, test } from "vitest";
import { headersForServer } from "../../../../daemon/domain/ports/http/headers.ts";
import { type PortAddress, placeOf } from "../../../../daemon/domain/ports/http/place.ts";

type Fields = Readonly<Record<string, string | undefined>>;

const PORT = 3000;
const last = (list: string | undefined) => list?.split(/,\s?/).at(-1);

/** Rails 5 to 8, request_forgery_protection.rb (valid_request_origin?) and http/url.rb (base_url). */
function rails({ origin, host, ...fields }: Fields): boolean {
  const scheme = last(fields["x-forwarded-proto"]) === "https" ? "https" : "http";
  const rawHost = last(fields["x-forwarded-host"]) ?? host ?? "";
  const baseUrl = `${scheme}://${rawHost.replace(scheme === "https" ? /:443$/ : /:80$/, "")}`;
  return origin === undefined || origin === baseUrl;
}

/** React Router 7.12, server-runtime/actions.ts (throwIfPotentialCSRFAttack), without allowedActionOrigins. */
function reactRouter({ origin, host, ...fields }: Fields): boolean {
  if (origin === undefined) return true;
  const originDomain = URL.parse(origin)?.host ?? origin;
  const forwarded = fields["x-forwarded-host"]?.split(",")[0]?.trim();
  return originDomain === (forwarded ?? host);
}

/** Vite 6, middlewares/hostCheck.ts with its default allowedHosts, and defaultAllowedOrigins of its CORS. */
function vite({ origin, host = "" }: Fields): boolean {
  const allowed = /^https?:\/\/(?:(?:[^:]+\.)?localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/;
  return /^(.*\.)?localhost(:\d+)?$/.test(host) && (origin === undefined || allowed.test(origin));
}

/** webpack-dev-server 5, Server.js (isValidHost and isSameOrigin) with allowedHosts "auto". */
function webpack({ origin, host = "" }: Fields): boolean {
  const nameOf = (header: string) =>
    URL.parse(/^(.+:)?\/\//.test(header) ? header : `//${header}`, "http://x")?.hostname;
  const isValid = (name: string | undefined) =>
    name === "localhost" || name === "127.0.0.1" || name === "[::1]" || (name?.endsWith(".localhost") ?? false);
  return isValid(nameOf(host)) && (origin === undefined || isValid(nameOf(origin)) || nameOf(origin) === nameOf(host));
}

/** Jupyter Server 2, base/handlers.py (check_origin and check_host) with its defaults. */
function jupyter({ origin, host = "" }: Fields): boolean {
  const isLocalHost = ["localhost", "127.0.0.1"].includes(host.replace(/:\d+$/, ""));
  return isLocalHost && (origin === undefined || origin.toLowerCase().split("://")[1] === host.toLowerCase());
}

/** Django 4 to 6, middleware/csrf.py (_origin_verified); ALLOWED_HOSTS of DEBUG. */
function django(useForwardedHost: boolean) {
  return ({ origin, host = "", ...fields }: Fields): boolean => {
    const own = (useForwardedHost && fields["x-forwarded-host"]) || host;
    if (!/^(.*\.)?(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(own)) return false;
    return origin === undefined || origin === `http://${own}`;
  };
}

const CHECKS: [string, (fields: Fields) => boolean][] = [
  ["Rails", rails],
  ["React Router", reactRouter],
  ["Vite", vite],
  ["webpack-dev-server", webpack],
  ["Jupyter", jupyter],
  ["Django", django(false)],
  ["Django with USE_X_FORWARDED_HOST", django(true)],
];
const URLS = { base_url: "https://rooms.example", domain: "ports.example" };
const PLACES: [string, PortAddress, string][] = [
  ["a path", placeOf("rooms.example", "/p/web-abc/x", URLS) as PortAddress, "https://rooms.example"],
  ["a host of its own", placeOf("web-abc.ports.example", "/x", URLS) as PortAddress, "https://web-abc.ports.example"],
];

const got = (place: PortAddress, headers: Record<string, string>): Fields =>
  Object.fromEntries(headersForServer(new Headers(headers), place, PORT, { ip: "192.0.2.1" }));

describe.each(PLACES)("by %s", (_, place, own) => {
  test.each(CHECKS)("%s accepts the application's own page", (_name, accepts) => {
    expect(accepts(got(place, { origin: own, referer: `${own}${place.prefix}/form` }))).toBe(true);
  });

  test.each(CHECKS)("%s refuses another's page", (_name, accepts) => {
    for (const origin of ["https://evil.example", `${own}.evil.example`, "http://localhost.evil.example"]) {
      expect(accepts(got(place, { origin }))).toBe(false);
    }
  });

  test("a server receives the outer host with an unchanged Origin", () => {
    const outer = { "x-forwarded-host": place.host, "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1" };
    expect(got(place, {})).toMatchObject(outer);
    expect(got(place, { origin: "https://evil.example" })).toMatchObject(outer);
    const turned = got(place, { origin: own });
    expect(turned).toMatchObject({ origin: "http://localhost:3000", "x-forwarded-for": "192.0.2.1" });
    expect(turned).not.toHaveProperty("x-forwarded-host");
    expect(turned).not.toHaveProperty("x-forwarded-proto");
  });
});
