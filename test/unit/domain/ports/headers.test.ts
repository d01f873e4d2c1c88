/** Headers, queries and cookies on their way between a client and a server in a guest. */
import { expect, test } from "vitest";
import type { Caller } from "../../../../daemon/core/call/operation.ts";
import { TICKET_PREFIXES, Tickets, ticketMark } from "../../../../daemon/core/call/tickets.ts";
import { headersForClient, headersForServer } from "../../../../daemon/domain/ports/http/headers.ts";
import { type PortAddress, placeOf } from "../../../../daemon/domain/ports/http/place.ts";
import { foreignCookies, hasSecret, splitQuery, tokenInCookies } from "../../../../daemon/domain/ports/http/secrets.ts";

const KEY = `key-${"A1".repeat(21)}z`;
const TOKEN = `ptk_${"A-_".repeat(14)}z`;
const URLS = { base_url: "https://rooms.example", domain: "ports.example:8443" };
const place = (host: string, path: string): PortAddress => placeOf(host, path, URLS) as PortAddress;
const PATH = place("rooms.example", "/p/web-abc/x");
const HOST = place("web-abc.ports.example:8443", "/x");

test.each([
  ["rooms.example", "/p/web-abc/x/y", { label: "web-abc", mode: "path", prefix: "/p/web-abc", path: "/x/y" }],
  ["any", "/p/web-abc", { label: "web-abc", mode: "path", prefix: "/p/web-abc", path: "" }],
  ["WEB-abc.Ports.example", "/p/x/", { label: "web-abc", mode: "host", prefix: "", path: "/p/x/" }],
  ["web-abc.ports.example.:1", "/", { label: "web-abc", mode: "host" }],
])("%s%s belongs to a port", (host, path, found) => {
  expect(placeOf(host, path, URLS)).toMatchObject(found);
});

test.each([
  ["rooms.example", "/v1/me"],
  ["rooms.example", "/px"],
  ["ports.example", "/v1/me"],
  ["a.b.ports.example", "/"],
  ["xports.example", "/"],
  ["a.ports.example.evil", "/"],
])("%s%s belongs to the API", (host, path) => {
  expect(placeOf(host, path, URLS)).toBeNull();
});

test("the API's own host never belongs to a port", () => {
  expect(placeOf("rooms.example", "/v1/me", { base_url: "https://rooms.example", domain: "example" })).toBeNull();
  expect(placeOf("other.example", "/v1/me", { base_url: "https://rooms.example", domain: "example" })).not.toBeNull();
});

test.each([
  [`Bearer ${KEY}`, true],
  [`Basic ${btoa(`user:${KEY}`)}`, true],
  [`basic  ${btoa(`${TOKEN}:`)}`, true],
  [TOKEN, true],
  [`x sat_${"a".repeat(43)}`, true],
  ["Bearer key-short", false],
  [`Bearer ${KEY}longer`, false],
  [`Basic ${btoa("user:password")}`, false],
  ["Bearer eyJhbGciOi.eyJzdWIi.sig", false],
])("%s is a secret of the service: %s", (value, expected) => {
  expect(hasSecret(value)).toBe(expected);
});

test.each(TICKET_PREFIXES)("a ticket %s is one, by a host alone and by one of several", (prefix) => {
  for (const mark of [null, ticketMark("host-2")]) {
    const { token } = new Tickets(mark).make(prefix, { key_id: "kid_1" } as Caller, { sandbox_id: "sbx_1" });
    expect(hasSecret(token)).toBe(true);
    expect(splitQuery(`?a=1&ticket=${token}`).search).toBe("?a=1");
    expect(foreignCookies(`a=1; b=${token}`)).toBe("a=1");
  }
});

test.each([
  ["?a=1&port_token=T&b=%20+", "?a=1&b=%20+", "T"],
  ["?port%5Ftoken=a%2Bb", "", "a+b"],
  ["?port_token=1&port_token=2", "", "1"],
  ["?port_token", "", ""],
  [`?a=${KEY}&b`, "?b", null],
  ["?a=%zz&&b", "?a=%zz&&b", null],
  ["?", "", null],
  ["", "", null],
])("the query %s", (search, kept, token) => {
  expect(splitQuery(search)).toEqual({ search: kept, token });
});

test("cookies of the service are removed", () => {
  expect(foreignCookies(`a=1; roomd_port_token=x; b="2; 3"; ROOMD-session=y; __Host-roomd=z; c=${KEY}`)).toBe(
    'a=1; b="2; 3"',
  );
  expect(foreignCookies("roomd_port_token=x")).toBeNull();
  expect([
    tokenInCookies("a=1; roomd_port_token=x=y", PATH),
    tokenInCookies("xroomd_port_token=1", PATH),
    tokenInCookies(null, PATH),
    tokenInCookies("roomd_port_token=another's; __Host-roomd_port_token=own", HOST),
    tokenInCookies("roomd_port_token=another's", HOST),
  ]).toEqual(["x=y", null, null, "own", null]);
});

test("hop by hop headers are removed, including those named by the client", () => {
  const headers = new Headers({
    connection: "keep-alive, X-Mine",
    "x-mine": "1",
    "keep-alive": "5",
    upgrade: "h2c",
    "proxy-authorization": "x",
    "transfer-encoding": "chunked",
    "content-length": "3",
    "sec-websocket-key": "k",
    accept: "*/*",
  });
  const sent = headersForServer(headers, HOST, 80, { ip: null });
  expect(sent).toEqual([
    ["host", "localhost"],
    ["accept", "*/*"],
    ["x-forwarded-host", "web-abc.ports.example:8443"],
    ["x-forwarded-proto", "https"],
    ["connection", "close"],
  ]);
});

test.each([
  [PATH, "/next", "/p/web-abc/next"],
  [PATH, "//evil.example/", "//evil.example/"],
  [PATH, "next", "next"],
  [PATH, "/p/web-abc/next?a", "/p/web-abc/next?a"],
  [PATH, "/p/web-abcd/next", "/p/web-abc/p/web-abcd/next"],
  [PATH, "https://rooms.example/after?a", "https://rooms.example/p/web-abc/after?a"],
  [PATH, "http://rooms.example:8080/after", "http://rooms.example:8080/after"],
  [PATH, "http://rooms.example/after", "https://rooms.example/p/web-abc/after"],
  [PATH, "https://rooms.example/p/web-abc/after", "https://rooms.example/p/web-abc/after"],
  [PATH, "//rooms.example/after", "https://rooms.example/p/web-abc/after"],
  [PATH, "https://rooms.example.evil/after", "https://rooms.example.evil/after"],
  [PATH, "http://0.0.0.0:8000/a", "https://rooms.example/p/web-abc/a"],
  [PATH, "http://[::]:8000/a", "https://rooms.example/p/web-abc/a"],
  [PATH, "http://0.0.0.0:9000/a", "http://0.0.0.0:9000/a"],
  [PATH, "mailto:a@rooms.example", "mailto:a@rooms.example"],
  [HOST, "http://0.0.0.0:8000/a", "https://web-abc.ports.example:8443/a"],
  [HOST, "https://web-abc.ports.example:8443/a", "https://web-abc.ports.example:8443/a"],
  [HOST, "//web-abc.ports.example:8443/a", "https://web-abc.ports.example:8443/a"],
  [PATH, "http://localhost:8000/a?b#c", "https://rooms.example/p/web-abc/a?b#c"],
  [PATH, "http://localhost:9000/a", "http://localhost:9000/a"],
  [PATH, "https://elsewhere.example/a", "https://elsewhere.example/a"],
  [HOST, "/next", "/next"],
  [HOST, "http://127.0.0.1:8000/a", "https://web-abc.ports.example:8443/a"],
])("from %o, Location: %s leads to %s", (from, location, expected) => {
  expect(headersForClient([["location", location]], from, 8000).get("location")).toBe(expected);
});

test.each([
  ["https://rooms.example", "http://localhost:8000"],
  ["https://rooms.example/p/web-abc/x?y", "http://localhost:8000/x?y"],
  ["https://rooms.example/p/other/secret", "http://localhost:8000/"],
  ["https://rooms.example.evil/x", "https://rooms.example.evil/x"],
  ["null", "null"],
])("from %s the server receives %s", (referer, expected) => {
  const sent = headersForServer(new Headers({ referer }), PATH, 8000, { ip: null });
  expect(Object.fromEntries(sent).referer).toBe(expected);
});

test.each([
  ['"*"', '"cache", "storage"'],
  ['"cookies"', null],
  ['"cache"', '"cache"'],
])("Clear-Site-Data: %s becomes for a port with a separate host %s", (value, expected) => {
  expect(headersForClient([["clear-site-data", value]], HOST, 8000).get("clear-site-data")).toBe(expected);
});

test("a separate host keeps the data of its origin, and its cookies keep their paths", () => {
  const answered: [string, string][] = [
    ["clear-site-data", '"cookies", "storage"'],
    ["set-cookie", "a=1; Path=/x; Domain=.ports.example; Secure"],
    ["set-cookie", "b=2; Path=y"],
    ["set-cookie", "__Host-roomd=1"],
    ["set-cookie", " = roomd_port_token=stolen"],
  ];
  const headers = headersForClient(answered, HOST, 8000);
  expect(headers.get("clear-site-data")).toBe('"storage"');
  expect(headers.getSetCookie()).toEqual(["a=1; Secure; Path=/x", "b=2; Path=/"]);
  expect(headers.has("content-security-policy")).toBe(false);
  const path = headersForClient(answered, PATH, 8000);
  expect(path.has("clear-site-data")).toBe(false);
  expect(path.getSetCookie()).toEqual(["a=1; Secure; Path=/p/web-abc/x", "b=2; Path=/p/web-abc/"]);
});
