/** The table of first bytes, byte by byte, and the consequence of each of its cells. */
import { describe, expect, test } from "vitest";
import { BEGINS, type Begin } from "../../../../daemon/domain/egress/first-line.ts";
import { helloOf, inRecords } from "./hello.ts";
import { EVIL_NAME, get, say } from "./said.ts";

const ROWS: [Begin, string, (byte: number) => boolean][] = [
  ["blank", "TAB to CR, and the space", (byte) => (byte >= 9 && byte <= 13) || byte === 32],
  ["record", "0x14 to 0x18", (byte) => byte >= 0x14 && byte <= 0x18],
  ["ssl2", "0x80 and above", (byte) => byte >= 0x80],
  [
    "line",
    "what a token has, and FS to US",
    (byte) => /[!#-'*+\-.0-9A-Z^-z|~]/.test(characterOf(byte)) || (byte >= 28 && byte <= 31),
  ],
  ["raw", "any other", () => true],
];
const BYTES = Array.from({ length: 256 }, (_, byte) => byte);
const EVIL = get(EVIL_NAME);
const characterOf = (byte: number) => String.fromCharCode(byte);
const rowOf = (byte: number) => ROWS.find(([, , has]) => has(byte))?.[0] ?? "raw";
const named = BYTES.map((byte) => [`0x${byte.toString(16).padStart(2, "0")}`, byte, rowOf(byte)] as const);

test("every byte is in its row", () => {
  expect(BEGINS).toEqual(BYTES.map(rowOf));
});

describe("for any first bytes, a request for another host is stopped before its Host", () => {
  test.each(named)("%s", (_, byte) => {
    for (const more of ["", "X", " ", "\0", "\xff", "\x1f \xa0"]) {
      const { out, refused } = say(characterOf(byte) + more + EVIL);
      expect(refused).not.toBeNull();
      expect(out).not.toContain("evil");
    }
  });
});

describe("a protocol that names no host passes, for any first bytes", () => {
  test.each(named)("%s", (_, byte) => {
    const text = `${characterOf(byte)}\x01\xfe\x02binary\n${EVIL}`;
    expect(say(text)).toEqual({ out: text, refused: null, presented: null });
  });
});

describe("TLS for another name is refused after blanks too", () => {
  test.each(named.filter(([, , row]) => row === "blank"))("%s", (_, byte) => {
    const hello = inRecords(helloOf({ names: EVIL_NAME })).toString("latin1");
    expect(say(characterOf(byte) + hello)).toMatchObject({ out: "", refused: "sni_mismatch" });
  });
});

describe("is refused", () => {
  const v2 = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c";
  test.each([
    ["the PROXY protocol", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"],
    ["the PROXY protocol without addresses", "PROXY UNKNOWN\r\n"],
    ["the PROXY protocol behind blanks", " \r\nPROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"],
    ["the PROXY protocol, version 2", v2],
    ["the PROXY protocol with a request behind it", `PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n${EVIL}`],
    ["a method of 20,000 letters", `${"a".repeat(20_000)}\xff / HTTP/1.1\r\nHost: evil.example\r\n\r\n`],
    ["lines on which nothing shows", `\0\n\x1c\r\n\x01GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n`],
    ["a method with letters of no token", "G\xcbT / HTTP/1.1\r\nHost: evil.example\r\n\r\n"],
    ["carriage returns for spaces", "FOO\r/\rHTTP/1.1\nHost: evil.example\n\n"],
    ["a line that continues invisibly", `\0GET / HTTP/1.1${" ".repeat(40_000)}\r\nHost: evil.example\r\n\r\n`],
  ])("%s", (_, text) => {
    for (const pieces of [[text], [...text]]) {
      const { out, refused } = say(...pieces);
      expect(refused).toBe("bad_request");
      expect(out).not.toMatch(/evil|QUIT|192/);
    }
  });
});

test("a line that is never HTTP is passed unchanged, and inspected only until its end", () => {
  for (const text of [
    '<13>1 host app "GET / HTTP/1.1" 200 5\n',
    `${"<".repeat(300_000)}\n GET / HTTP/1.1\r\n`,
    "\0\0\0\x08\x04\xd2\x16\x2f",
  ]) {
    for (const pieces of [[text], [...text.slice(0, 5000)]]) expect(say(...pieces).out).toBe(pieces.join(""));
  }
});
