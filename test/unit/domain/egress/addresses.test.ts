/** The kind of an address, whatever its notation. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contains, kindOf, readAddress, readRange, within } from "../../../../daemon/domain/egress/addresses.ts";

const kindOfText = (text: string) => {
  const address = readAddress(text);
  return address && kindOf(address);
};

const KINDS = {
  public: [
    ...["1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"],
    ...["172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"],
    ...[
      "223.255.255.255",
      "168.63.129.15",
      "2606:4700::1111",
      "2a00::1",
      "3ffe::1",
      "::ffff:8.8.8.8",
      "64:ff9b::8.8.8.8",
    ],
  ],
  private: [
    ...["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"],
    ...["100.64.0.0", "100.127.255.255", "192.0.0.1", "168.63.129.16", "fc00::1", "fd00:ec2::254"],
    ...["::ffff:10.0.0.1", "::ffff:a00:1", "::10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::c0a8:101"],
  ],
  never: [
    ...["0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.255", "169.254.169.254", "169.254.0.0", "224.0.0.1"],
    ...["239.255.255.255", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.1", "198.18.0.1"],
    ...["198.19.255.255", "192.88.99.1", "::", "::1", "fe80::1", "febf::1", "ff02::1", "fec0::1", "2001:db8::1"],
    ...[
      "2001::1",
      "2002:7f00:1::",
      "2002:a00:1::",
      "64:ff9b:1::a00:1",
      "100::1",
      "3fff::1",
      "4000::1",
      "::ffff:127.0.0.1",
    ],
    ...["::127.0.0.1", "64:ff9b::169.254.169.254", "::ffff:0:0", "::ffff:a9fe:a9fe"],
  ],
} as const;

describe.each(Object.entries(KINDS))("%s", (kind, texts) => {
  test.each(texts)("%s", (text) => expect(kindOfText(text)).toBe(kind));
});

test.each([
  ...[
    "127.1",
    "0x7f000001",
    "0x7f.0.0.1",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "01.2.3.4",
    "1.2.3",
    "1.2.3.4.5",
  ],
  ...["1.2.3.256", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4.", "[::1]", "fe80::1%eth0", "::g", "1::2::3", "１.2.3.4", ""],
])("%j is not an address", (text) => expect(readAddress(text)).toBeNull());

test.each([
  ["::ffff:10.1.2.3", "10.1.2.3"],
  ["0:0:0:0:0:FFFF:0A01:0203", "10.1.2.3"],
  ["2606:4700:0:0:0:0:0:1", "2606:4700::1"],
  ["2606:4700::0:1", "2606:4700::1"],
])("%s is %s", (written, usual) => expect(readAddress(written)?.text).toBe(usual));

test("every IPv4 address has one value, within its own range, and in IPv6 too", () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.integer({ min: 0, max: 32 }), (text, prefix) => {
      const address = readAddress(text);
      const range = readRange(`${text}/${prefix}`);
      if (!address || !range) return false;
      expect(readAddress(`::ffff:${text}`)).toMatchObject({ family: 4, value: address.value });
      expect(readRange(`::ffff:${text}/${96 + prefix}`)).toEqual(range);
      return contains(range, address) && kindOf(address) === kindOfText(`64:ff9b::${text}`);
    }),
  );
});

test("every IPv6 address is parsed to its own value", () => {
  const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
  fc.assert(
    fc.property(groups, (numbers) => {
      const value = numbers.reduce((sum, group) => sum * 65_536n + BigInt(group), 0n);
      const address = readAddress(numbers.map((group) => group.toString(16)).join(":"));
      return address?.family === 4 ? address.value === (value & 0xffff_ffffn) : address?.value === value;
    }),
  );
});

test.each([
  "10.0.0.0/33",
  "10.0.0.0/-1",
  "10.0.0.0/",
  "10.0.0.0/8/8",
  "10.0.0/8",
  "::/129",
  "::ffff:10.0.0.0/95",
  "a/8",
])("%s is not a range", (text) => expect(readRange(text)).toBeNull());

test("a range contains another one, or not", () => {
  const isWithin = (inner: string, outer: string) => {
    const [one, other] = [readRange(inner), readRange(outer)];
    return one && other && within(one, other);
  };
  expect(isWithin("10.1.0.0/16", "10.0.0.0/8")).toBe(true);
  expect(isWithin("10.0.0.0/8", "10.0.0.0/8")).toBe(true);
  expect(isWithin("0.0.0.0/0", "127.0.0.0/8")).toBe(false);
  expect(isWithin("::/0", "0.0.0.0/0")).toBe(false);
});
