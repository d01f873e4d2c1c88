/** The client's address of a request: only claims of a trusted proxy are accepted. */
import { expect, test } from "vitest";
import { ConfigError } from "../../../daemon/core/config/config.ts";
import { makeClientAddress, trustedProxies } from "../../../daemon/edge/http/client-address.ts";

const addressOf = (trusted: string, peer: string | null, ...forwarded: string[]) => {
  const headers = new Headers();
  for (const each of forwarded) headers.append("x-forwarded-for", each);
  return makeClientAddress(trustedProxies(trusted))(peer, headers);
};

test.each([
  ["no proxy is trusted", "", "127.0.0.1", ["203.0.113.7"], "127.0.0.1"],
  ["another peer is", "10.0.0.1", "10.0.0.2", ["203.0.113.7"], "10.0.0.2"],
  ["the peer is", "10.0.0.0/8", "10.0.0.2", ["203.0.113.7"], "203.0.113.7"],
  ["the header is empty", "10.0.0.0/8", "10.0.0.2", [], "10.0.0.2"],
  ["the client adds a claim", "10.0.0.0/8", "10.0.0.2", ["198.51.100.1, 203.0.113.7"], "203.0.113.7"],
  ["in a header of its own", "10.0.0.0/8", "10.0.0.2", ["198.51.100.1", "203.0.113.7"], "203.0.113.7"],
  ["there are two proxies", "10.0.0.0/8", "10.0.0.2", ["198.51.100.1, 203.0.113.7, 10.0.0.3"], "203.0.113.7"],
  ["all are proxies", "10.0.0.0/8", "10.0.0.2", ["10.0.0.4, 10.0.0.3"], "10.0.0.4"],
  ["the header has an invalid address", "10.0.0.0/8", "10.0.0.2", ["203.0.113.7, unknown"], "10.0.0.2"],
  ["it has a port", "::1", "::1", ["203.0.113.7:4711"], "203.0.113.7"],
  ["it is IPv6", "::1", "::1", ["[2001:db8::7]:4711"], "2001:db8::7"],
  ["IPv4 is written as IPv6", "127.0.0.1", "::ffff:127.0.0.1", ["::ffff:203.0.113.7"], "203.0.113.7"],
  ["there is no peer", "10.0.0.0/8", null, ["203.0.113.7"], null],
])("if %s", (_, trusted, peer, forwarded, expected) => {
  expect(addressOf(trusted, peer, ...forwarded)).toBe(expected);
});

test("limits the number of proxies for a header of any length", () => {
  const long = `203.0.113.7, ${Array(1000).fill("10.0.0.3").join(", ")}`;
  expect(addressOf("10.0.0.0/8", "10.0.0.2", long)).toBe("10.0.0.3");
});

test.each(["10.0.0.0/33", "proxy.example.org", Array(65).fill("10.0.0.1").join()])("refuses %s", (text) => {
  expect(() => trustedProxies(text)).toThrow(ConfigError);
});
