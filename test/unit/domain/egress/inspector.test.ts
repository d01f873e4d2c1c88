/** Bytes that a sandbox may send on a connection to one name: by tables, in pieces of any size, and random bytes. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Inspector } from "../../../../daemon/domain/egress/inspector.ts";
import { helloOf, inRecords } from "./hello.ts";
import { bytesOf, get, NAME, say } from "./said.ts";

const FINE = get(NAME);
const EVIL = get("evil.example");
const SWITCHES = bytesOf("HTTP/1.1 101 Switching Protocols\r\n\r\n");
const CONTINUES = bytesOf("HTTP/1.1 200 OK\r\n\r\n");

describe("passes unchanged", () => {
  const websocket = get(NAME, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
  test.each<[string, string]>([
    ["a request", FINE],
    ["another case, a port", get("ALLOWED.Example:8080")],
    ["a target with the host", get(NAME, "", `GET http://${NAME}:80/x HTTP/1.1`)],
    ["OPTIONS *", get(NAME, "", "OPTIONS * HTTP/1.1")],
    ["any method", get(NAME, "Depth: 0\r\n", "PROPFIND /x HTTP/1.1")],
    ["HTTP/1.0", get(NAME, "", "GET / HTTP/1.0")],
    ["two requests", FINE + FINE],
    ["a body, and another request", `${get(NAME, "Content-Length: 5\r\n", "POST / HTTP/1.1")}hello${FINE}`],
    ["a body that looks like a request", get(NAME, `Content-Length: ${EVIL.length}\r\n`, "POST / HTTP/1.1") + EVIL],
    [
      "chunks, trailers, and another request",
      `${get(NAME, "Transfer-Encoding: Chunked\r\n", "POST / HTTP/1.1")}5;a="b"\r\nhello\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n${FINE}`,
    ],
    ["a request for a WebSocket", websocket],
    ["a protocol that is neither", "\0\x01\x02anything\r\nHost: evil.example\r\n\r\n"],
    ["a line of another protocol", `EHLO me\r\n${EVIL}`],
    ["SSH", "SSH-2.0-client\r\n\0\0\0"],
    ["database traffic", "\0\0\0\x08\x04\xd2\x16\x2f"],
    ["JSON", '{"GET / HTTP/1.1": 1}'],
    ["an empty line", "\r\n"],
    ["a word longer than any method", "a".repeat(20_000)],
  ])("%s", (_, text) => expect(say(text)).toEqual({ out: text, refused: null, presented: null }));

  test("TLS for the name, and all following bytes", () => {
    for (const names of [NAME, "Allowed.EXAMPLE"]) {
      const hello = inRecords(helloOf({ names }));
      expect(say(hello, EVIL)).toEqual({ out: hello.toString("latin1") + EVIL, refused: null, presented: null });
    }
  });

  test("bytes after a WebSocket request, once the server has accepted", () => {
    const frames = "\x81\x05hello";
    expect(say(websocket, frames).out).toBe(websocket);
    expect(say(websocket, frames, { answer: SWITCHES })).toEqual({
      out: websocket + frames,
      refused: null,
      presented: null,
    });
    const [first, rest] = [SWITCHES.subarray(0, 5), SWITCHES.subarray(5)];
    expect(say(websocket, frames, { answer: first }).out).toBe(websocket);
    expect(say(websocket, { answer: first }, { answer: rest }, frames).out).toBe(websocket + frames);
  });

  test("bytes after a WebSocket request, once the server has accepted after interim responses", () => {
    const interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    const answer = interim + SWITCHES.toString("latin1");
    const passed = { out: `${websocket}\x81\x05hello`, refused: null, presented: null };
    expect(say(websocket, { answer: bytesOf(answer) }, "\x81\x05hello")).toEqual(passed);
    const pieces = [...answer].map((character) => ({ answer: bytesOf(character) }));
    expect(say(websocket, "\x81\x05hello", ...pieces)).toEqual(passed);
    expect(say(websocket, "\x81\x05hello", ...pieces.slice(0, interim.length + 12)).out).toBe(websocket);
    expect(say(websocket, EVIL, { answer: bytesOf(`${interim}HTTP/1.1 200 OK\r\n`) })).toMatchObject({
      out: websocket,
      refused: "host_mismatch",
    });
    const endless = { answer: bytesOf(`HTTP/1.1 103 Early Hints\r\nLink: ${"a".repeat(10_000)}`) };
    expect(say(websocket, endless)).toMatchObject({ refused: "bad_request" });
  });

  test("an upgrade that the server does not support, without the offer", () => {
    const h2c = get(NAME, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n");
    // The offer is removed, so that the response is HTTP/1.
    const plain = get(NAME);
    expect(say(h2c, FINE).out).toBe(plain + FINE);
    expect(say(h2c, FINE, { answer: CONTINUES })).toMatchObject({ out: plain + FINE, refused: null });
    expect(say(websocket, EVIL, { answer: CONTINUES })).toMatchObject({ out: websocket, refused: "host_mismatch" });
  });
});

describe("is refused", () => {
  const upgrade = (more: string) => get(NAME, more, "POST / HTTP/1.1");
  const cases: [string, string, string | null, (string | Buffer | { answer: Buffer })[]][] = [
    ["another host", "host_mismatch", "evil.example", [EVIL]],
    ["an address", "host_mismatch", "10.0.0.1", [get("10.0.0.1")]],
    ["a name below it", "host_mismatch", `x.${NAME}`, [get(`x.${NAME}`)]],
    ["another host after blanks", "host_mismatch", "evil.example", [`\r\n\n \t${EVIL}`]],
    ["a Host with a dot at its end", "bad_request", null, [get(`${NAME}.`)]],
    ["no Host", "bad_request", null, ["GET / HTTP/1.1\r\n\r\n"]],
    ["two Hosts", "bad_request", null, [get(NAME, `Host: ${NAME}\r\n`)]],
    [
      "a Host that a mapping would make this one",
      "bad_request",
      null,
      [get(`${NAME.slice(0, 3)}\xad${NAME.slice(3)}`)],
    ],
    ["a Host with a letter of latin-1", "bad_request", null, [get(`\xaallowed.example`)]],
    ["a target with such a host", "bad_request", null, [get(NAME, "", "GET http://\xaallowed.example/ HTTP/1.1")]],
    [
      "TLS for a name with such a letter",
      "sni_mismatch",
      "\xaallowed.example",
      [inRecords(helloOf({ names: "\xaallowed.example" }))],
    ],
    [
      "TLS for a name that a mapping would make this one",
      "sni_mismatch",
      `${NAME}\xad`,
      [inRecords(helloOf({ names: `${NAME}\xad` }))],
    ],
    ["TLS for the name with a dot", "sni_mismatch", `${NAME}.`, [inRecords(helloOf({ names: `${NAME}.` }))]],
    ["an odd Host", "bad_request", null, [get("127.1")]],
    ["a Host with a user", "bad_request", null, [get(`${NAME}@evil.example`)]],
    ["a target elsewhere", "bad_request", null, [get(NAME, "", "GET http://evil.example/ HTTP/1.1")]],
    ["a target with a user", "bad_request", null, [get(NAME, "", `GET http://${NAME}@evil.example/ HTTP/1.1`)]],
    ["CONNECT", "bad_request", null, [get(NAME, "", "CONNECT evil.example:443 HTTP/1.1")]],
    ["CONNECT to itself", "bad_request", null, [get(NAME, "", `CONNECT ${NAME}:443 HTTP/1.1`)]],
    ["HTTP/2 without TLS", "bad_request", null, ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]],
    ["HTTP/0.9", "bad_request", null, ["GET /\r\n\r\n"]],
    ["bare line feeds", "bad_request", null, [`${EVIL.replaceAll("\r\n", "\n")}\r\n\r\n`]],
    ["a bare carriage return", "bad_request", null, [get(NAME, "X: a\rHost: evil.example\r\n")]],
    ["a folded field", "bad_request", null, [get(NAME, "X: a\r\n Host: evil.example\r\n")]],
    ["a space before a colon", "bad_request", null, [get(NAME, "Content-Length : 5\r\n")]],
    ["a length and chunks", "bad_request", null, [upgrade("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")]],
    ["two lengths", "bad_request", null, [upgrade("Content-Length: 5\r\nContent-Length: 6\r\n")]],
    ["a length with a sign", "bad_request", null, [upgrade("Content-Length: +5\r\n")]],
    ["another coding", "bad_request", null, [upgrade("Transfer-Encoding: gzip, chunked\r\n")]],
    ["chunks twice", "bad_request", null, [upgrade("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")]],
    ["chunks of HTTP/1.0", "bad_request", null, [upgrade("Transfer-Encoding: chunked\r\n").replace("1.1", "1.0")]],
    ["a chunk without a length", "bad_request", null, [`${upgrade("Transfer-Encoding: chunked\r\n")}x\r\n`]],
    ["a chunk with another end", "bad_request", null, [`${upgrade("Transfer-Encoding: chunked\r\n")}1\r\nabc`]],
    ["the second request", "host_mismatch", "evil.example", [FINE, EVIL]],
    [
      "the second request behind a body",
      "host_mismatch",
      "evil.example",
      [`${upgrade("Content-Length: 2\r\n")}ab${EVIL}`],
    ],
    [
      "the one behind chunks",
      "host_mismatch",
      "evil.example",
      [`${upgrade("Transfer-Encoding: chunked\r\n")}0\r\n\r\n${EVIL}`],
    ],
    [
      "a later change of protocol",
      "bad_request",
      null,
      [FINE, get(NAME, "Connection: upgrade\r\nUpgrade: websocket\r\n")],
    ],
    [
      "Upgrade without Connection, when it is done",
      "bad_request",
      null,
      [get(NAME, "Upgrade: x\r\n"), { answer: SWITCHES }],
    ],
    [
      "h2c, when it is done",
      "bad_request",
      null,
      [get(NAME, "Connection: upgrade\r\nUpgrade: h2c\r\n"), { answer: SWITCHES }],
    ],
    [
      "a change before the body's end",
      "bad_request",
      null,
      [upgrade("Content-Length: 9\r\nUpgrade: websocket\r\n"), { answer: SWITCHES }],
    ],
    [
      "a method that is split at odd bytes",
      "host_mismatch",
      "evil.example",
      ["FOO /\xff", " HTTP/1.1\r\nHost: evil.example\r\n\r\n"],
    ],
    ["a line feed before it", "host_mismatch", "evil.example", ["\n".repeat(20_000), EVIL]],
    ["a blank of another kind", "bad_request", null, ["GET\x0b/\x0bHTTP/1.1\r\nHost: evil.example\r\n\r\n"]],
    ["a method with such a blank", "bad_request", null, ["FOO\xa0/\xa0HTTP/1.1\r\nHost: evil.example\r\n\r\n"]],
    ["a first line without end", "bad_request", null, [`FOO /${"a".repeat(20_000)}`]],
    ["a head without end", "bad_request", null, [`GET / HTTP/1.1\r\nX: ${"a".repeat(70_000)}`]],
    ["TLS for another", "sni_mismatch", "evil.example", [inRecords(helloOf({ names: "evil.example" }))]],
    ["TLS for an address", "sni_mismatch", "10.0.0.1", [inRecords(helloOf({ names: "10.0.0.1" }))]],
    ["TLS without a name", "sni_missing", null, [inRecords(helloOf({ names: null }))]],
    ["TLS without a name, in SSL 2 form", "sni_missing", null, [Buffer.from([0x80, 0x2e, 1, 3, 1, 0, 21])]],
    ["invalid TLS", "bad_request", null, [Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0])]],
    [
      "TLS without end",
      "bad_request",
      null,
      [inRecords(Buffer.concat([Buffer.from([1, 0, 255, 255]), Buffer.alloc(70_000)]))],
    ],
  ];
  test.each(cases)("%s", (_, refused, presented, pieces) => {
    const result = say(...pieces);
    expect([result.refused, result.presented]).toEqual([refused, presented]);
    expect(result.out).not.toContain("evil");
  });
});

describe("in pieces", () => {
  const chunked = `${get(NAME, "Transfer-Encoding: chunked\r\n", "POST / HTTP/1.1")}5\r\nhello\r\n0\r\n\r\n`;
  const sized = `${get(NAME, "Content-Length: 5\r\n", "POST / HTTP/1.1")}hello`;
  const parts = fc.array(fc.constantFrom(FINE, chunked, sized), { maxLength: 5 });

  /** Cuts a text anywhere. */
  const cut = (text: string, cuts: number[]) => {
    const at = [0, ...cuts.map((each) => each % (text.length + 1)), text.length].sort((a, b) => a - b);
    return at.slice(1).map((end, index) => text.slice(at[index], end));
  };

  test("valid requests pass whole, and no byte of the first invalid one does", () => {
    fc.assert(
      fc.property(parts, fc.array(fc.nat(5000), { maxLength: 30 }), (good, cuts) => {
        const text = good.join("");
        expect(say(...cut(text, cuts))).toEqual({ out: text, refused: null, presented: null });
        const result = say(...cut(text + EVIL, cuts));
        expect(result).toMatchObject({ refused: "host_mismatch", presented: "evil.example" });
        expect(text.startsWith(result.out)).toBe(true);
      }),
    );
  });

  test("no cut of a TLS hello for another name passes a byte", () => {
    const text = inRecords(helloOf({ names: "evil.example" }), [60, 100]).toString("latin1");
    fc.assert(
      fc.property(fc.array(fc.nat(5000), { maxLength: 30 }), (cuts) => {
        expect(say(...cut(text, cuts))).toEqual({ out: "", refused: "sni_mismatch", presented: "evil.example" });
      }),
    );
  });

  test("a request for another host never passes, with any bytes before it or within its line", () => {
    const noise = fc.string({ unit: fc.constantFrom(..."GET \t\r\n/:aX\0\x0b\xff1.".split("")), maxLength: 12 });
    fc.assert(
      fc.property(noise, noise, (before, within) => {
        const text = `GET ${within}/ HTTP/1.1\r\n${before}Host: evil.example\r\n\r\n`;
        // Without a Host of its own name only blanks of it may pass.
        return say(text).out.trim() === "";
      }),
      { numRuns: 500 },
    );
  });

  test("a long head passes byte by byte", () => {
    const head = bytesOf(get(NAME, `X: ${"a".repeat(60_000)}\r\n`));
    const inspector = new Inspector(NAME);
    const out = Array.from(head, (byte) => inspector.push(Buffer.from([byte])));
    expect(Buffer.concat(out).equals(head)).toBe(true);
  });

  test("garbage passes, is held or refused, is never changed and never throws", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 6 }), (pieces) => {
        const whole = Buffer.concat(pieces).toString("latin1");
        return whole.startsWith(say(...pieces.map((piece) => Buffer.from(piece))).out);
      }),
      { numRuns: 300 },
    );
  });
});
