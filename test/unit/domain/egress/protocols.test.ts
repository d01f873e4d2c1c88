/** First messages of protocols on a connection that is allowed by name: each passes as it is, or is refused when it has been sent. */
import { describe, expect, test } from "vitest";
import { Inspector } from "../../../../daemon/domain/egress/inspector.ts";
import { helloOf, inRecords } from "./hello.ts";
import { bytesOf, EVIL_NAME, get, NAME, say } from "./said.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex").toString("latin1");
const lengthLe = (bytes: number) => hex(Buffer.from(Uint32Array.of(bytes).buffer).toString("hex"));
/** MongoDB's OP_MSG of this length. */
const mongo = (bytes: number, requestId = "01000000") =>
  lengthLe(bytes) + hex(`${requestId} 00000000 dd070000`) + "\0".repeat(bytes - 16);
/** MySQL's packet of this length, the client's first. */
const mysql = (bytes: number, flags = "85a6ff19") =>
  `${lengthLe(bytes).slice(0, 3)}\x01${hex(`${flags} 00000001 2d`)}${"\0".repeat(Math.max(0, bytes - 9))}`;

const PASSED: [string, string][] = [
  ["MySQL, with a request for TLS", hex("20000001 85aeff19 00000001 2d") + "\0".repeat(23)],
  ...[13, 22, 32, 78, 199, 276, 277, 278, 279, 280].map((bytes): [string, string] => [
    `MySQL, a login of ${bytes} bytes`,
    mysql(bytes),
  ]),
  ...[57, 269, 270, 276, 277, 278, 279, 280, 288, 534].map((bytes): [string, string] => [
    `MongoDB, a hello of ${bytes} bytes`,
    mongo(bytes),
  ]),
  ["PostgreSQL, with a request for TLS", hex("00000008 04d2162f")],
  ["PostgreSQL, without TLS", `${hex("00000020 00030000")}user\0me\0database\0you\0\0`],
  ["SQL Server", hex("1201002f 00000100 00001a00 06010020 0001 02")],
  ["Oracle", `${hex("00570000 01000000 013a 012c")}(CONNECT_DATA=(SERVICE_NAME=x))`],
  ["LDAP, anonymous bind", hex("300c 020101 6007 020103 0400 8000")],
  ["LDAP, simple bind", `${hex("3019 020101 6014 020103 0409")}cn=a,dc=b${hex("8004")}pass`],
  ["LDAP, with a request for TLS", `${hex("301d 020101 7718 8016")}1.3.6.1.4.1.1466.20037`],
  ["git", "0032git-upload-pack /p.git\0host=git.example.org\0"],
  ["memcached, text", "version\r\n"],
  ["memcached, a value", "set key 0 60 5\r\nhello\r\n"],
  ["memcached, meta", "mg key v\r\n"],
  ["memcached, binary", hex("80000003 00000000 00000003 00000000 00000000 00000000 6b6579")],
  ["Redis", "*1\r\n$4\r\nPING\r\n"],
  ["Redis, inline", "PING\r\n"],
  ["NATS, which is pinged", "PING\r\n"],
  ["STOMP 1.2", "STOMP\naccept-version:1.2\nhost:h\n\n\0"],
  ["AMQP 0-9-1", "AMQP\0\0\x09\x01"],
  ["AMQP 1.0 with SASL", "AMQP\x03\x01\0\0"],
  ["MQTT", `${hex("100f 0004")}MQTT${hex("04 02 003c 0003")}abc`],
  ["Kafka", `${hex("00000017 0012 0003 00000001 0006")}client${hex("00 01 00")}`],
  ["ZooKeeper", hex("0000002d 00000000 0000000000000000 00007530 0000000000000000 00000010") + "\0".repeat(17)],
  ["Cassandra", hex("05000000 05 00000000")],
  ["SMTP", "EHLO me\r\n"],
  ["IMAP", "a1 CAPABILITY\r\n"],
  ["POP3", "CAPA\r\n"],
  ["FTP", "USER anonymous\r\n"],
  ["IRC", "NICK me\r\nUSER me 0 * :me\r\n"],
  ["SSH", "SSH-2.0-OpenSSH_10.0\r\n"],
  ["rsync", "@RSYNCD: 31.0\n"],
  ["Telnet", hex("fffd03")],
  ["DNS over TCP", hex("001d 1234 0100 0001 0000 0000 0000 07 6578616d706c65 03 6f7267 00 0001 0001")],
  ["SIP's ping", "\r\n\r\n"],
  ["SOCKS 5", hex("050100")],
  ["RDP", hex("0300002b 26e00000 000000")],
  ["SMB", hex("00000045 ff534d42 72")],
  ["FIX", "8=FIX.4.4\x019=12\x0135=A\x0110=0\x01"],
  ["Beanstalk", "use default\r\n"],
];

const REFUSED: [string, string][] = [
  ["memcached's get, which is a method of HTTP", "get key\r\n"],
  ["memcached's delete", "delete key\r\n"],
  ["Redis' inline GET", "GET key\r\n"],
  ["NATS' CONNECT", 'CONNECT {"verbose":false}\r\nPING\r\n'],
  ["STOMP's CONNECT", "CONNECT\naccept-version:1.2\nhost:h\n\n\0"],
  ["HTTP/0.9", "GET /\r\n"],
  ["HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["RTSP, with a method of HTTP", "OPTIONS rtsp://allowed.example/ RTSP/1.0\r\n"],
  ["CONNECT", "CONNECT evil.example:443 HTTP/1.1\r\n"],
  ["a method before a NUL", "GET /\0"],
];

/** Whether anything is held back after these pieces. */
function isUndecided(pieces: string[]): boolean {
  const inspector = new Inspector(NAME);
  for (const piece of pieces) inspector.push(bytesOf(piece));
  return inspector.isUndecided;
}

describe("passes unchanged, with all following bytes", () => {
  test.each(PASSED)("%s", (_, text) => {
    for (const pieces of [[text], [...text]]) {
      expect(say(...pieces)).toEqual({ out: text, refused: null, presented: null });
      expect(isUndecided(pieces)).toBe(false);
    }
  });
});

describe("is refused at the end of its first line", () => {
  test.each(REFUSED)("%s", (_, text) => {
    for (const pieces of [[text], [...text]]) expect(say(...pieces)).toMatchObject({ out: "", refused: "bad_request" });
  });
});

describe("is not mistaken for a protocol without a host", () => {
  const hello = inRecords(helloOf({ names: EVIL_NAME })).toString("latin1");
  const ofVersion = (major: string) => hello.slice(0, 1) + major + hello.slice(2);
  test.each<[string, string]>([
    ["a ClientHello in a record of another version", ofVersion("\0")],
    ["a ClientHello in a record of a large version", ofVersion("\x0f")],
    ["a ClientHello behind a warning, which Go's crypto/tls passes over", `${hex("15030100020100")}${hello}`],
    ["a warning of another version", `${hex("15000100020100")}${hello}`],
    ["a ClientHello behind a change of ciphers", `${hex("140303000101")}${hello}`],
    ["a ClientHello behind an empty record", `${hex("1603010000")}${hello}`],
    ["a ClientHello behind an empty record of another version", `${hex("1600010000")}${hello}`],
    ["a ClientHello behind data", `${hex("1703030000")}${hello}`],
    ["a version before a NUL", `<\x01 / HTTP/1.1 \0\r\nHost: ${EVIL_NAME}\r\n\r\n`],
    ["a version before a NUL and more", `FOO / HTTP/1.1\0more\r\nHost: ${EVIL_NAME}\r\n\r\n`],
    ["a version behind a control character", `FOO \x01/ HTTP/1.1 more\r\nHost: ${EVIL_NAME}\r\n\r\n`],
  ])("%s", (_, text) => {
    for (const pieces of [[text], [...text]]) {
      const { out, refused } = say(...pieces);
      expect(refused).not.toBeNull();
      expect(out).not.toContain("evil");
    }
  });
});

describe("HTTP that offers another protocol", () => {
  const offer = (more: string, line?: string) => get(NAME, `Upgrade: TLS/1.2\r\nConnection: ${more}Upgrade\r\n`, line);

  test("on every request passes without the offer", () => {
    const plain = get(NAME);
    expect(say(offer(""), offer(""))).toEqual({ out: plain + plain, refused: null, presented: null });
    expect(say(offer("keep-alive, ")).out).toBe(get(NAME, "Connection: keep-alive\r\n"));
  });

  test("with a chunked body passes without it", () => {
    const h2c = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n";
    const chunked = "Transfer-Encoding: chunked\r\n";
    const body = "2\r\nok\r\n0\r\n\r\n";
    const post = (more: string) => get(NAME, more, "POST / HTTP/1.1") + body;
    expect(say(post(h2c + chunked))).toEqual({ out: post(chunked), refused: null, presented: null });
  });

  test("of another host is refused too", () => {
    const evil = get(EVIL_NAME, "Upgrade: TLS/1.2\r\nConnection: Upgrade\r\n");
    expect(say(offer(""), evil)).toMatchObject({ refused: "host_mismatch" });
  });
});
