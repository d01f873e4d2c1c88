/** The decision itself, by a table: a list, a place, and whether it may be reached. */
import { describe, expect, test } from "vitest";
import { readAddress, readRange } from "../../../../daemon/domain/egress/addresses.ts";
import { Policy, type Verdict } from "../../../../daemon/domain/egress/allowlist.ts";

/** An operator that lets sandboxes reach 10.1.0.0/16, including this host's 10.1.0.1, and no other private address. */
const GROUND = {
  privateRanges: ["10.1.0.0/16", "5.5.5.5/32"].flatMap((text) => readRange(text) ?? []),
  isHosts: ({ text }: { text: string }) => ["10.1.0.1", "10.2.0.1", "5.5.5.5", "6.6.6.6"].includes(text),
};

const addressOf = (text: string) => {
  const address = readAddress(text);
  if (!address) throw new Error(`${text} is no address`);
  return address;
};

describe("an address by itself", () => {
  test.each<[string[], string, number, Verdict]>([
    [["*"], "8.8.8.8", 53, "allowed"],
    [["*"], "10.1.2.3", 80, "blocked_address"],
    [["*"], "169.254.169.254", 80, "blocked_address"],
    [["*"], "6.6.6.6", 80, "blocked_address"],
    [["*"], "fd00::1", 80, "blocked_address"],
    [["8.8.8.8"], "8.8.8.8", 80, "allowed"],
    [["8.8.8.8"], "8.8.8.9", 80, "not_listed"],
    [["8.8.8.8"], "::ffff:8.8.8.8", 80, "allowed"],
    [["8.8.8.8"], "64:ff9b::808:808", 80, "allowed"],
    [["8.8.8.8:443"], "8.8.8.8", 443, "allowed"],
    [["8.8.8.8:443"], "8.8.8.8", 80, "not_listed"],
    [["8.8.0.0/16:443", "8.8.8.8:80"], "8.8.8.8", 80, "allowed"],
    [["0.0.0.0/0"], "8.8.8.8", 80, "allowed"],
    [["0.0.0.0/0"], "127.0.0.1", 80, "blocked_address"],
    [["0.0.0.0/0"], "2600::1", 80, "not_listed"],
    [["::/0"], "::1", 80, "blocked_address"],
    [["::/0"], "8.8.8.8", 80, "not_listed"],
    [["example.org"], "8.8.8.8", 80, "not_listed"],
    // Both the list and the configuration must allow it.
    [["10.1.0.0/16"], "10.1.2.3", 80, "allowed"],
    [["10.1.2.3:80"], "10.1.2.3", 443, "blocked_address"],
    [["10.0.0.0/8"], "10.2.2.3", 80, "blocked_address"],
    [["example.org"], "10.1.2.3", 80, "blocked_address"],
    [["10.1.0.0/16"], "10.1.0.1", 80, "allowed"],
    [["10.0.0.0/8"], "10.2.0.1", 80, "blocked_address"],
    [["5.5.5.5"], "5.5.5.5", 80, "allowed"],
    [["*"], "5.5.5.5", 80, "blocked_address"],
    [["6.6.6.6"], "6.6.6.6", 80, "blocked_address"],
    [[], "8.8.8.8", 80, "not_listed"],
  ])("with %j %s:%i is %s", (list, address, port, verdict) => {
    expect(new Policy(list, GROUND).ofAddress(addressOf(address), port)).toBe(verdict);
  });
});

describe("a name", () => {
  test.each<[string[], string, number | null, boolean]>([
    [["example.org"], "example.org", 1, true],
    [["EXAMPLE.org."], "example.org", null, true],
    [["example.org"], "www.example.org", 1, false],
    [["example.org"], "notexample.org", 1, false],
    [["example.org:443"], "example.org", 443, true],
    [["example.org:443"], "example.org", 80, false],
    [["example.org:443"], "example.org", null, true],
    [["*.example.org"], "a.example.org", 1, true],
    [["*.example.org"], "a.b.example.org", 1, true],
    [["*.example.org"], "example.org", 1, false],
    [["*.example.org"], "aexample.org", 1, false],
    [["*.example.org:80"], "a.example.org", 81, false],
    [["*"], "anything", 1, true],
    [["8.8.8.8", "0.0.0.0/0"], "example.org", 1, false],
    [["*.com", "http://example.org", "127.0.0.1"], "example.com", 1, false],
    [[], "example.org", null, false],
  ])("with %j %s at %s: %s", (list, name, port, allowed) => {
    expect(new Policy(list, GROUND).allowsName(name, port)).toBe(allowed);
  });

  test.each<[string[], string, Verdict]>([
    [["example.org"], "8.8.8.8", "allowed"],
    [["example.org"], "10.1.2.3", "blocked_address"],
    [["example.org", "10.1.0.0/16"], "10.1.2.3", "allowed"],
    [["example.org", "10.2.0.0/16"], "10.2.2.3", "blocked_address"],
    [["example.org"], "6.6.6.6", "blocked_address"],
    [["example.org"], "127.0.0.1", "blocked_address"],
    [["example.org"], "::ffff:169.254.169.254", "blocked_address"],
  ])("with %j that leads to %s: %s", (list, address, verdict) => {
    expect(new Policy(list, GROUND).ofResolved(addressOf(address), 80)).toBe(verdict);
  });
});

test("a list is empty if none of its entries is usable", () => {
  expect([[], ["127.0.0.1"], ["*"]].map((list) => new Policy(list, GROUND).isEmpty)).toEqual([true, true, false]);
});
