/** Names and entries of an egress list: how they are written, compared and refused. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { REFUSALS, readEntry } from "../../../../daemon/domain/egress/entries.ts";
import { canonicalName } from "../../../../daemon/domain/egress/names.ts";

describe("a name", () => {
  test.each([
    ["example.org", "example.org"],
    ["EXAMPLE.Org", "example.org"],
    ["example.org.", "example.org"],
    ["_srv.x-y.example.org", "_srv.x-y.example.org"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["BÜCHER.EXAMPLE", "xn--bcher-kva.example"],
    ["bu\u0308cher.example", "xn--bcher-kva.example"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["example。org", "example.org"],
    ["ｅｘａｍｐｌｅ.org", "example.org"],
    ["exam\u00adple.org", "example.org"],
    ["straße.example", "xn--strae-oqa.example"],
    ["intranet", "intranet"],
  ])("%s is %s", (written, name) => expect(canonicalName(written)).toBe(name));

  test.each([
    ...[
      "",
      ".",
      "..",
      "a..b",
      ".a",
      "a.b..",
      "-a.b",
      "a-.b",
      "a b",
      "a/b",
      "a:1",
      "a@b",
      "a%2eb",
      "a\0b",
      "a\nb",
      "*.a",
    ],
    ...["127.1", "0x7f.1", "0x", "a.0x7f", "2130706433", "1.2.3.4", "a.1", "１２７.1", "[::1]", `${"a".repeat(64)}.b`],
    ...[`${"a.".repeat(126)}ab`, "a.\u2488", "\u{1f600}\ud800.example"],
  ])("%j is not a name", (text) => expect(canonicalName(text)).toBeNull());

  test("a name is its own canonical form, in any case and with a trailing dot", () => {
    const label = fc.stringMatching(/^[a-z]([a-z0-9-]{0,10}[a-z0-9])?$/).filter((text) => !text.startsWith("xn--"));
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 5 }), (labels) => {
        const name = labels.join(".");
        return canonicalName(name) === name && canonicalName(`${name.toUpperCase()}.`) === name;
      }),
    );
  });

  test("garbage has a stable canonical form, or none", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
        const name = canonicalName(text);
        return name === null || (canonicalName(name) === name && /^[a-z0-9._-]+$/.test(name));
      }),
    );
  });
});

const ENTRIES = [
  ["*", { kind: "any", port: null }],
  ["Example.ORG.", { kind: "name", name: "example.org", wildcard: false, port: null }],
  ["example.org:443", { kind: "name", name: "example.org", wildcard: false, port: 443 }],
  ["*.example.org", { kind: "name", name: "example.org", wildcard: true, port: null }],
  ["*.BÜCHER.example:8080", { kind: "name", name: "xn--bcher-kva.example", wildcard: true, port: 8080 }],
  ["*.example.co.uk", { kind: "name", name: "example.co.uk", wildcard: true, port: null }],
  ["*.me.github.io", { kind: "name", name: "me.github.io", wildcard: true, port: null }],
  ["intranet", { kind: "name", name: "intranet", wildcard: false, port: null }],
  ["1.2.3.4", { kind: "range", family: 4, base: 0x01020304n, prefix: 32, port: null }],
  ["1.2.3.4:65535", { kind: "range", family: 4, base: 0x01020304n, prefix: 32, port: 65_535 }],
  ["10.1.2.3/8:22", { kind: "range", family: 4, base: 0x0a000000n, prefix: 8, port: 22 }],
  ["0.0.0.0/0", { kind: "range", family: 4, base: 0n, prefix: 0, port: null }],
  ["::ffff:1.2.3.4", { kind: "range", family: 4, base: 0x01020304n, prefix: 32, port: null }],
  ["2600::/16", { kind: "range", family: 6, base: 0x2600n << 112n, prefix: 16, port: null }],
  ["[2600::1]:443", { kind: "range", family: 6, base: (0x2600n << 112n) + 1n, prefix: 128, port: 443 }],
  ["[2600::/16]:443", { kind: "range", family: 6, base: 0x2600n << 112n, prefix: 16, port: 443 }],
] as const;

const REFUSED: Record<keyof typeof REFUSALS, string[]> = {
  suffix: ["*.com", "*.co.uk", "*.github.io", "*.local", "*.s3.amazonaws.com", "*.ck"],
  url: ["http://example.org", "https://example.org:443/x", "example.org/x", "//example.org"],
  range: [
    ...[
      "127.0.0.1",
      "127.8.0.0/16",
      "169.254.169.254",
      "224.0.0.1",
      "0.0.0.0",
      "::1",
      "[::1]:80",
      "fe80::/64",
      "ff02::1",
    ],
    ...["::ffff:127.0.0.1", "64:ff9b::127.0.0.1", "::ffff:169.254.169.254"],
  ],
  numeric: ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "1.2.3.256", "10.1:80"],
  port: ["example.org:0", "example.org:65536", "example.org:", "[::2]:"],
  syntax: ["", " ", "a b", "*.", "*.*.org", "a.*.org", "*a.org", "user@example.org", "[example.org", "a:b"],
  loopback: ["localhost", "a.localhost", "LOCALHOST."],
  prefix: ["10.0.0.0/33"],
  length: ["a".repeat(301)],
};

describe("an entry", () => {
  test.each(ENTRIES)("%s is parsed", (text, entry) => expect(readEntry(text)).toEqual(entry));
  describe.each(Object.entries(REFUSED))("%s", (refused, texts) => {
    test.each(texts)("%j", (text) => expect(readEntry(text)).toEqual({ refused }));
  });

  test("of garbage is parsed or rejected with a reason, and never throws", () => {
    const pieces = fc.constantFrom(
      "*",
      ".",
      ":",
      "/",
      "[",
      "]",
      "a",
      "org",
      "1",
      "0x",
      "::",
      "256",
      "ü",
      "http://",
      " ",
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(text, (written) => {
        const entry = readEntry(written);
        return "refused" in entry
          ? entry.refused in REFUSALS
          : entry.port === null || (entry.port > 0 && entry.port < 65_536);
      }),
    );
  });
});
