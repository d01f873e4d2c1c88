/** A guest's requests to its guard over a link that are refused: no connection is made here. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readRange } from "../../../../daemon/domain/egress/addresses.ts";
import type { Denial } from "../../../../daemon/domain/egress/denials.ts";
import { Guard, MAX_CONNECTIONS } from "../../../../daemon/domain/egress/guard.ts";
import { HostResolver } from "../../../../daemon/domain/egress/resolver.ts";
import { StreamError } from "../../../../shared/agent-protocol/link.ts";
import type { DnsRecord } from "../../../../shared/agent-protocol/messages.ts";
import { joined, settled } from "../../../protocol/wire.ts";

const directory = mkdtempSync(join(tmpdir(), "roomd-egress-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const HOSTS = `
10.0.0.1        private.allowed.example
169.254.169.254 metadata.allowed.example   # where credentials are
127.0.0.1       loopback.allowed.example
100.64.0.1      carrier.allowed.example
fd00::1         local.allowed.example
6.6.6.6         host.allowed.example
10.9.9.9        many.allowed.example
192.168.1.1     many.allowed.example MANY.other.example.
::ffff:10.0.0.1 hidden.allowed.example
`;

const srv = (target: string, port = 443): DnsRecord => ({ type: "SRV", priority: 1, weight: 2, port, target });
const RECORDS: Record<string, DnsRecord[]> = {
  "_mongodb._tcp.allowed.example": [
    srv("a.allowed.example"),
    srv("allowed.example", 80),
    srv("evil.example"),
    srv("A..b"),
  ],
  "allowed.example": [
    { type: "TXT", texts: ["v=spf1 -all", "x".repeat(256)] },
    { type: "MX", preference: 10, target: "Mail.Allowed.Example." },
    { type: "MX", preference: 20, target: "mail.evil.example" },
  ],
  "_dmarc.evil.example": [{ type: "TXT", texts: ["secret"] }],
};

/** A guard, and a guest that sends requests to it. */
function guarded(allowlist: string[], resolver: Pick<HostResolver, "resolve"> | null = null) {
  const records: (Denial & { count: number })[] = [];
  const each: Denial[] = [];
  const file = join(directory, "hosts");
  writeFileSync(file, HOSTS);
  const hosts = new HostResolver(file, "guest");
  const guard = new Guard(allowlist, {
    ground: {
      privateRanges: ["10.9.0.0/16"].flatMap((text) => readRange(text) ?? []),
      isHosts: ({ text }) => text === "6.6.6.6",
    },
    resolve: (name) => (resolver ?? hosts).resolve(name, { org_id: "org", sandbox_id: "sandbox" }),
    records: async (name, type) => (RECORDS[name] ?? []).filter((each) => each.type === type),
    bytesPerSecond: 1,
    opened: () => () => {},
    refused: (denial) => each.push(denial),
    record: (denial) => records.push(denial),
  });
  const { guest } = joined({
    host: {
      maxPeerStreams: 2 * MAX_CONNECTIONS,
      onOpen: (stream, request) => {
        const { method } = request as { method: string };
        const act = { egress_connect: "connect", egress_resolve: "resolve", egress_records: "records" } as const;
        void guard[act[method as keyof typeof act]](stream, request as object);
      },
    },
  });
  const ask = (request: object) => guest.link.open(request as { method: string });
  const connect = async (host: unknown, port: unknown = 443) => {
    try {
      return await ask({ method: "egress_connect", host, port }).finished;
    } catch (error) {
      if (!(error instanceof StreamError)) throw error;
      return { code: error.code, message: error.message };
    }
  };
  const resolve = (name: unknown) => ask({ method: "egress_resolve", name }).finished;
  const recordsOf = (name: unknown, type: unknown) => ask({ method: "egress_records", name, type } as never).finished;
  return { guard, ask, connect, resolve, recordsOf, records, each };
}

const LIST = ["allowed.example:443", "*.allowed.example", "1.2.3.4:443"];
/** A refusal that names the destination, and no address besides. */
const denied = (target: string) => ({
  code: "egress_denied",
  message: expect.stringMatching(new RegExp(`^${target.replace(/[^\w:]/g, "\\$&")} [a-z' ]+\\.$`)),
});

describe("a connection is refused", () => {
  test.each<[string, number, string, Omit<Denial, "reason">]>([
    ["evil.example", 443, "evil.example:443", { host: "evil.example", ip: null, port: 443 }],
    ["EVIL.example.", 443, "evil.example:443", { host: "evil.example", ip: null, port: 443 }],
    ["allowed.example", 80, "allowed.example:80", { host: "allowed.example", ip: null, port: 80 }],
    [
      "allowed.example.evil.example",
      443,
      "allowed.example.evil.example:443",
      { host: "allowed.example.evil.example", ip: null, port: 443 },
    ],
    ["localhost", 443, "localhost:443", { host: "localhost", ip: null, port: 443 }],
    ["8.8.8.8", 443, "8.8.8.8:443", { host: null, ip: "8.8.8.8", port: 443 }],
    ["1.2.3.4", 80, "1.2.3.4:80", { host: null, ip: "1.2.3.4", port: 80 }],
    ["::ffff:8.8.8.8", 443, "8.8.8.8:443", { host: null, ip: "8.8.8.8", port: 443 }],
    ["2606:4700:0::1", 443, "[2606:4700::1]:443", { host: null, ip: "2606:4700::1", port: 443 }],
    // Spellings that some resolvers would read as an address are names that do not exist.
    ["127.1", 443, "127.1:443", { host: "127.1", ip: null, port: 443 }],
    ["0x7f000001", 443, "0x7f000001:443", { host: "0x7f000001", ip: null, port: 443 }],
    ["2130706433", 443, "2130706433:443", { host: "2130706433", ip: null, port: 443 }],
    ["x\0.allowed.example", 443, "x?.allowed.example:443", { host: "x?.allowed.example", ip: null, port: 443 }],
    [
      "evil.example#.allowed.example",
      443,
      "evil.example#.allowed.example:443",
      { host: "evil.example#.allowed.example", ip: null, port: 443 },
    ],
  ])("to %s:%i, which is not on the list", async (host, port, target, where) => {
    const { connect, guard, records, each } = guarded(LIST);
    expect(await connect(host, port)).toEqual(denied(target));
    expect(each).toEqual([{ ...where, reason: "not_listed" }]);
    guard.close();
    expect(records).toEqual([{ ...where, reason: "not_listed", count: 1 }]);
  });

  test.each([
    ["private.allowed.example", "10.0.0.1"],
    ["PRIVATE.allowed.example.", "10.0.0.1"],
    ["metadata.allowed.example", "169.254.169.254"],
    ["loopback.allowed.example", "127.0.0.1"],
    ["carrier.allowed.example", "100.64.0.1"],
    ["local.allowed.example", "fd00::1"],
    ["host.allowed.example", "6.6.6.6"],
    ["many.allowed.example", "10.9.9.9"],
    ["hidden.allowed.example", "10.0.0.1"],
  ])("to %s, which leads to %s, and neither the guest nor the audit receives the address", async (host) => {
    const { connect, guard, records } = guarded(LIST);
    const name = host.toLowerCase().replace(/\.$/, "");
    expect(await connect(host)).toEqual(denied(`${name}:443`));
    guard.close();
    expect(records).toEqual([{ host: name, ip: null, port: 443, reason: "blocked_address", count: 1 }]);
  });

  test.each([
    "10.0.0.1",
    "10.9.9.9",
    "169.254.169.254",
    "127.0.0.1",
    "6.6.6.6",
    "::1",
    "64:ff9b::a00:1",
    "255.255.255.255",
  ])("to %s, although any public destination is allowed", async (ip) => {
    const { connect, guard, records } = guarded(["*"]);
    expect(await connect(ip)).toMatchObject({ code: "egress_denied" });
    guard.close();
    expect(records).toMatchObject([{ host: null, reason: "blocked_address" }]);
  });

  test.each([
    [null, 443],
    ["a".repeat(300), 443],
    ["allowed.example", 0],
    ["allowed.example", 65_536],
    ["allowed.example", 4.5],
    ["allowed.example", "443"],
  ])("with the invalid destination %j:%j, without a record", async (host, port) => {
    const { connect, guard, records } = guarded(LIST);
    expect(await connect(host, port)).toMatchObject({ code: "invalid_request" });
    guard.close();
    expect(records).toEqual([]);
  });
});

test("a name gets an answer without a lookup, unless the list has it or is empty", async () => {
  const lookups: string[] = [];
  const resolver = {
    resolve: async (name: string) => {
      lookups.push(name);
      if (name === "lost.allowed.example") throw new Error("no answer");
      return name === "none.allowed.example" ? [] : [{ family: 4 as const, value: 1n, text: "0.0.0.1" }];
    },
  };
  const { resolve, guard, records } = guarded(LIST, resolver);
  expect(await resolve("Allowed.example.")).toEqual({ answer: "address" });
  expect(await resolve("none.allowed.example")).toEqual({ answer: "none" });
  expect(await resolve("lost.allowed.example")).toEqual({ answer: "failed" });
  expect(lookups).toEqual(["allowed.example", "none.allowed.example", "lost.allowed.example"]);
  expect(await resolve("secret-as-a-name.evil.example")).toEqual({ answer: "address" });
  for (const none of [null, 5, "127.1", "a b", ""]) expect(await resolve(none)).toEqual({ answer: "none" });
  guard.setAllowlist([]);
  expect(await resolve("allowed.example")).toEqual({ answer: "none" });
  expect(lookups).toHaveLength(3);
  guard.close();
  expect(records).toEqual([{ host: "allowed.example", ip: null, port: null, reason: "not_listed", count: 1 }]);
});

test("equal refusals are one record with their count, and above the limit of kinds only a count", async () => {
  const { connect, guard, records } = guarded([]);
  await Promise.all(Array.from({ length: 50 }, () => connect("evil.example")));
  await Promise.all(Array.from({ length: 40 }, (_, port) => connect("8.8.8.8", port + 1)));
  guard.close();
  expect(records).toHaveLength(33);
  expect(records[0]).toEqual({ host: "evil.example", ip: null, port: 443, reason: "not_listed", count: 50 });
  expect(records.at(-1)).toEqual({ host: null, ip: null, port: null, reason: "other", count: 9 });
});

test("connections are limited, including pending ones, and a changed list applies to those too", async () => {
  const found = Promise.withResolvers<never[]>();
  const { ask, connect, guard, records } = guarded(LIST, { resolve: () => found.promise });
  const waiting = Array.from({ length: MAX_CONNECTIONS }, () =>
    ask({ method: "egress_connect", host: "allowed.example", port: 443 }).finished.catch(
      (error: StreamError) => error.code,
    ),
  );
  await settled();
  expect(await connect("allowed.example")).toMatchObject({ code: "too_many_connections" });
  guard.setAllowlist(["other.example"]);
  found.resolve([]);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(["egress_denied"]));
  guard.close();
  expect(records).toEqual([
    { host: "allowed.example", ip: null, port: 443, reason: "not_listed", count: MAX_CONNECTIONS },
  ]);
});

describe("other records than addresses", () => {
  const none = { answer: "found", records: [] };

  test("are returned for allowed names, with allowed targets only", async () => {
    const { recordsOf } = guarded(LIST);
    expect(await recordsOf("_MongoDB._tcp.allowed.example.", "SRV")).toEqual({
      answer: "found",
      records: [srv("a.allowed.example")],
    });
    expect(await recordsOf("allowed.example", "TXT")).toEqual({
      answer: "found",
      records: [{ type: "TXT", texts: ["v=spf1 -all"] }],
    });
    expect(await recordsOf("allowed.example", "MX")).toEqual({
      answer: "found",
      records: [{ type: "MX", preference: 10, target: "mail.allowed.example" }],
    });
    expect(await recordsOf("nothing.allowed.example", "MX")).toEqual(none);
  });

  test("of other names are never resolved", async () => {
    const { recordsOf, records } = guarded(LIST);
    for (const name of ["_dmarc.evil.example", "_tcp", "_allowed.example.evil.example", "x._tcp.evil.example"])
      expect(await recordsOf(name, "TXT")).toEqual(none);
    expect(records).toEqual([]);
  });

  test("are refused for an empty list, for an invalid name, and for other types", async () => {
    const { recordsOf, each } = guarded([]);
    expect(await recordsOf("allowed.example", "TXT")).toEqual({ answer: "none", records: [] });
    expect(each).toEqual([{ host: "allowed.example", ip: null, port: null, reason: "not_listed" }]);
    expect(await guarded(LIST).recordsOf(7, "TXT")).toEqual({ answer: "none", records: [] });
    await expect(guarded(LIST).recordsOf("allowed.example", "ANY")).rejects.toMatchObject({ code: "invalid_request" });
  });
});
