/** Messages in both directions: the same parts however their bytes are split, and inputs that two receivers could read differently. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ByteQueue } from "../../../../daemon/wire/byte-queue.ts";
import { BadMessage } from "../../../../daemon/wire/http1/bad-message.ts";
import { RequestParser } from "../../../../daemon/wire/http1/requests.ts";
import { ResponseParser } from "../../../../daemon/wire/http1/responses.ts";
import { LAST_CHUNK, serializeChunk, serializeHead } from "../../../../daemon/wire/http1/serializer.ts";

const REQUEST = "POST /x HTTP/1.1\r\nHost: a.example\r\n";
const ANSWER = "HTTP/1.1 200 OK\r\n";
const CHUNKED = "Transfer-Encoding: chunked\r\n";

type Direction = "requests" | "answer";
const parserOf = (queue: ByteQueue, direction: Direction, method: string) =>
  direction === "requests" ? new RequestParser(queue) : new ResponseParser(queue, method);

/** The parts of these pieces, adjacent bytes of a body as one; "refused" at the end if the parser throws. */
function partsOf(direction: Direction, pieces: readonly Uint8Array[], method = "GET") {
  const queue = new ByteQueue();
  const parser = parserOf(queue, direction, method);
  const parts: { kind: string; raw: string; about?: unknown }[] = [];
  let isRefused = false;
  try {
    for (const piece of pieces) {
      queue.push(piece);
      for (let part = parser.next(); part !== null; part = parser.next()) {
        const raw = part.raw.toString("latin1");
        const last = parts.at(-1);
        if (part.kind === "data" && last?.kind === "data") last.raw += raw;
        else if (part.kind === "head") parts.push({ kind: "head", raw, about: part.head });
        else if (part.kind === "end") parts.push({ kind: "end", raw, about: part.trailers });
        else parts.push({ kind: part.kind, raw });
      }
    }
  } catch (error) {
    if (!(error instanceof BadMessage)) throw error;
    isRefused = true;
  }
  return { parts, isRefused, rest: queue.bytes.toString("latin1") };
}
const whole = (direction: Direction, text: string, method?: string) =>
  partsOf(direction, [Buffer.from(text, "latin1")], method);
const kindsOf = (direction: Direction, text: string, method?: string) =>
  whole(direction, text, method).parts.map(({ kind }) => kind);

/** The bytes split at any positions. */
const split = (bytes: Buffer, cuts: readonly number[]) => {
  const at = [0, ...cuts.map((each) => each % (bytes.byteLength + 1)), bytes.byteLength].sort((a, b) => a - b);
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
};

describe("however the bytes are split", () => {
  const line = fc.constantFrom(
    ...["Host: a.example\r\n", "Content-Length: 3\r\n", CHUNKED, "X: a b\r\n", "X:\r\n", "\r\n", "\n", "x: y\n"],
    ...["3\r\nabc\r\n", "A;x=y\r\n0123456789\r\n", "0\r\n\r\n", "0\r\nT: 1\r\n\r\n", "abc", "0", "\r", " ", "\0"],
    ...["GET / HTTP/1.1\r\n", "POST /x HTTP/1.1\r\nHost: b\r\n", `${REQUEST}${CHUNKED}\r\n`, `${REQUEST}\r\n`],
    ...["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 101 X\r\n\r\n", `${ANSWER}${CHUNKED}\r\n`, `${ANSWER}\r\n`, ANSWER],
  );
  const odd = fc.array(line, { maxLength: 12 }).map((lines) => lines.join(""));
  const begin: Record<Direction, string[]> = {
    requests: [
      `${REQUEST}\r\n`,
      `${REQUEST}${CHUNKED}\r\n2\r\nab\r\n0\r\nT: 1\r\n\r\n`,
      `${REQUEST}Content-Length: 3\r\n\r\nabc`,
    ],
    answer: [`${ANSWER}${CHUNKED}\r\n`, `${ANSWER}Content-Length: 30\r\n\r\n`, "HTTP/1.1 103 X\r\n\r\n"],
  };

  test.each<Direction>(["requests", "answer"])("%s have the same parts, and every byte is in one", (direction) => {
    const messages = fc.array(fc.constantFrom(...begin[direction]), { maxLength: 3 });
    let [accepted, refused] = [0, 0];
    fc.assert(
      fc.property(messages, fc.oneof(fc.constant(""), odd), fc.array(fc.nat(300)), (first, more, cuts) => {
        const bytes = Buffer.from(first.join("") + more, "latin1");
        const once = partsOf(direction, [bytes]);
        const { parts, isRefused, rest } = once;
        expect(parts.map(({ raw }) => raw).join("") + rest).toBe(bytes.toString("latin1"));
        if (isRefused) refused++;
        else if (parts.length > 1) accepted++;
        for (const pieces of [split(bytes, cuts), Array.from(bytes, (byte) => Uint8Array.of(byte))]) {
          const again = partsOf(direction, pieces);
          expect([again.parts, again.isRefused]).toEqual([parts, isRefused]);
        }
      }),
      { numRuns: 2000 },
    );
    expect([accepted > 200, refused > 200]).toEqual([true, true]);
  });
});

describe("requests", () => {
  const chunks = (text: string) => `${REQUEST}${CHUNKED}\r\n${text}`;
  test.each<[string, string]>([
    ["one", `${REQUEST}\r\n`],
    ["an empty line before it", `\r\n\r\n${REQUEST}\r\n`],
    ["an unknown method", "FROB /x HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a target with its host", "GET http://A.example:80/x HTTP/1.1\r\nHost: a.EXAMPLE\r\n\r\n"],
    ["a target without a path", "GET http://a.example HTTP/1.0\r\nHost: a.example\r\n\r\n"],
    ["OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["an address of IPv6", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"],
    ["a length", `${REQUEST}Content-Length: 3\r\n\r\nabc`],
    ["chunks in any case", `${REQUEST}transfer-encoding:  CHUNKED\t\r\n\r\n0\r\n\r\n`],
    ["an extension of a chunk", chunks('1 ; a="b"\r\na\r\n0\r\n\r\n')],
    ["trailers", chunks("0\r\nA: b\r\n\r\n")],
    ["256 headers", `${REQUEST}${"A: b\r\n".repeat(255)}\r\n`],
    ["an upgrade", `${REQUEST}Upgrade: websocket\r\nConnection: upgrade\r\n\r\n`],
  ])("with %s are accepted, and the next one is read after their end", (_, text) => {
    const { parts, isRefused } = whole("requests", text + text);
    expect([isRefused, parts.filter(({ kind }) => kind === "end").length]).toEqual([false, 2]);
    expect(whole("requests", `${text}${REQUEST}Host: b\r\n\r\n`).isRefused).toBe(true);
  });

  test.each<[string, string]>([
    ["a length and chunks", `${REQUEST}Content-Length: 3\r\n${CHUNKED}\r\n`],
    ["chunks and a length", `${REQUEST}${CHUNKED}Content-Length: 3\r\n\r\n`],
    ["two lengths", `${REQUEST}Content-Length: 3\r\nContent-Length: 4\r\n\r\n`],
    ["the same length twice", `${REQUEST}Content-Length: 3\r\nContent-Length: 3\r\n\r\n`],
    ["lengths in one field", `${REQUEST}Content-Length: 3, 3\r\n\r\n`],
    ["a length with a sign", `${REQUEST}Content-Length: +3\r\n\r\n`],
    ["a negative length", `${REQUEST}Content-Length: -3\r\n\r\n`],
    ["a length in hex", `${REQUEST}Content-Length: 0x3\r\n\r\n`],
    ["an empty length", `${REQUEST}Content-Length:\r\n\r\n`],
    ["a length of 16 digits", `${REQUEST}Content-Length: ${"1".repeat(16)}\r\n\r\n`],
    ["another coding", `${REQUEST}Transfer-Encoding: gzip\r\n\r\n`],
    ["two codings", `${REQUEST}Transfer-Encoding: gzip, chunked\r\n\r\n`],
    ["chunks twice", `${REQUEST}${CHUNKED}${CHUNKED}\r\n`],
    ["an empty coding", `${REQUEST}Transfer-Encoding:\r\n${CHUNKED}\r\n`],
    ["a coding with a vertical tab", `${REQUEST}Transfer-Encoding: \x0bchunked\r\n\r\n`],
    ["chunks in HTTP/1.0", `POST / HTTP/1.0\r\nHost: a\r\n${CHUNKED}\r\n`],
    ["a blank before the colon", `${REQUEST}Transfer-Encoding : chunked\r\n\r\n`],
    ["a folded field", `${REQUEST}X: a\r\n b\r\n\r\n`],
    ["a blank before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"],
    ["a field without a colon", `${REQUEST}X\r\n\r\n`],
    ["a field without a name", `${REQUEST}: x\r\n\r\n`],
    ["a name with a letter of latin1", `${REQUEST}\xc4: x\r\n\r\n`],
    ["bare line feeds", REQUEST.replaceAll("\r\n", "\n")],
    ["one bare line feed", `${REQUEST}X: y\n\r\n`],
    ["an empty line without a carriage return", `${REQUEST}\n`],
    ["a bare carriage return", `${REQUEST}X: a\rY: b\r\n\r\n`],
    ["two carriage returns", `${REQUEST}X: a\r\r\n\r\n`],
    ["NUL in a value", `${REQUEST}X: \0\r\n\r\n`],
    ["NUL in a name", `${REQUEST}X\0: a\r\n\r\n`],
    ["NUL in a target", "GET /\0 HTTP/1.1\r\n"],
    ["DEL", `${REQUEST}X: \x7f\r\n\r\n`],
    ["an invalid method", "G(T / HTTP/1.1\r\n"],
    ["no method", " / HTTP/1.1\r\n"],
    ["CONNECT", "CONNECT a.example:443 HTTP/1.1\r\n"],
    ["two blanks", "GET  / HTTP/1.1\r\n"],
    ["a tab", "GET\t/ HTTP/1.1\r\n"],
    ["a blank in the target", "GET /a b HTTP/1.1\r\n"],
    ["a blank after the version", "GET / HTTP/1.1 \r\n"],
    ["HTTP/0.9", "GET /\r\n"],
    ["HTTP/2", "PRI * HTTP/2.0\r\n"],
    ["HTTP/1.2", "GET / HTTP/1.2\r\n"],
    ["a version in lower case", "GET / http/1.1\r\n"],
    ["a relative target", "GET x HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["an asterisk for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a target elsewhere", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a target of another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a target with a user", "GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["no Host", "GET / HTTP/1.1\r\n\r\n"],
    ["no Host in HTTP/1.0", "GET / HTTP/1.0\r\n\r\n"],
    ["an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"],
    ["two Hosts", `${REQUEST}Host: a.example\r\n\r\n`],
    ["two hosts in one field", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"],
    ["a Host with a user", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"],
    ["a Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"],
    ["a Host with a letter of latin1", "GET / HTTP/1.1\r\nHost: a\xad\r\n\r\n"],
    ["a Host with a port in letters", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"],
    ["a name in brackets", "GET / HTTP/1.1\r\nHost: [a.example]\r\n\r\n"],
    ["257 headers", `${REQUEST}${"A: b\r\n".repeat(256)}\r\n`],
    ["a head of over 64 KiB", `${REQUEST}${`A: ${"b".repeat(1000)}\r\n`.repeat(66)}`],
    ["an endless first line", `GET /${"a".repeat(66_000)}`],
    ["a chunk without a size", chunks("\r\na\r\n")],
    ["a negative chunk", chunks("-1\r\n")],
    ["a chunk's size with 0x", chunks("0x1\r\na\r\n")],
    ["a chunk's size of 13 digits", chunks(`${"1".repeat(13)}\r\n`)],
    ["a blank after a chunk's size", chunks("1 \r\na\r\n")],
    ["a bare line feed after a chunk's size", chunks("1\na\r\n")],
    ["a bare line feed in an extension", chunks("1;a\nb\r\na\r\n")],
    ["a bare carriage return in an extension", chunks("1;a\rb\r\na\r\n")],
    ["an endless extension", chunks(`1;${"a".repeat(300)}`)],
    ["a chunk longer than its size", chunks("1\r\nab\r\n")],
    ["a bare line feed after a chunk", chunks("1\r\na\n")],
    ["a bare carriage return after a chunk", chunks("1\r\na\r0\r\n\r\n")],
    ["a folded trailer", chunks("0\r\nA: b\r\n c\r\n\r\n")],
    ["a trailer without a colon", chunks("0\r\nA\r\n\r\n")],
    ["a bare line feed in trailers", chunks("0\r\nA: b\n\r\n")],
    ["257 trailers", chunks(`0\r\n${"A: b\r\n".repeat(257)}\r\n`)],
  ])("with %s are refused, and not passed on", (_, text) => {
    const good = `${REQUEST}\r\n`;
    const { parts, isRefused } = whole("requests", good + text);
    expect(isRefused).toBe(true);
    expect(parts.slice(0, 2).map(({ kind }) => kind)).toEqual(["head", "end"]);
    expect(parts.slice(2).some(({ kind }) => kind === "end")).toBe(false);
  });

  test("a refused first line needs no more than its end", () => {
    expect(whole("requests", "GET / HTTP/1.1\r\nHost").isRefused).toBe(false);
    expect(whole("requests", "GET / HTTP/3.1\r").isRefused).toBe(false);
    expect(whole("requests", "GET / HTTP/3.1\r\n").isRefused).toBe(true);
  });

  test("the host is the one of Host, in lower case, without its port", () => {
    const heads = whole(
      "requests",
      "GET / HTTP/1.1\r\nHost: A.example:80\r\n\r\nGET / HTTP/1.1\r\nHost: [::F]\r\n\r\n",
    ).parts;
    expect(heads.flatMap(({ about }) => (about as { host?: string }).host ?? [])).toEqual(["a.example", "::f"]);
  });
});

describe("an answer", () => {
  test.each<[string, string, string, string[]]>([
    ["with a length", "GET", `${ANSWER}Content-Length: 3\r\n\r\nabc`, ["head", "data", "end"]],
    ["with the same length twice", "GET", `${ANSWER}${"Content-Length: 0\r\n".repeat(2)}\r\n`, ["head", "end"]],
    ["with trailers", "GET", `${ANSWER}${CHUNKED}\r\n0\r\nA: b\r\n\r\n`, ["head", "framing", "end"]],
    ["until the end", "GET", `${ANSWER}\r\nabc`, ["head", "data"]],
    ["to HEAD", "HEAD", `${ANSWER}${CHUNKED}\r\n`, ["head", "end"]],
    ["of 204", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", ["head", "end"]],
    ["of 304", "GET", "HTTP/1.1 304\r\n\r\n", ["head", "end"]],
    ["of 101", "GET", "HTTP/1.1 101 Switching Protocols\r\n\r\n", ["head", "end"]],
    [
      "after others",
      "GET",
      "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\n\r\nHTTP/1.1 204 N\r\n\r\n",
      ["head", "end", "head", "end", "head", "end"],
    ],
  ])("%s is followed to its end, and no byte behind it is taken", (_, method, text, kinds) => {
    expect(kindsOf("answer", text, method)).toEqual(kinds);
    if (kinds.at(-1) === "end") expect(whole("answer", `${text}\x81\x05hello`, method).rest).toBe("\x81\x05hello");
  });

  test.each<[string, string]>([
    ["chunks of HTTP/1.0", `HTTP/1.0 200 OK\r\n${CHUNKED}\r\n`],
    ["a bare line feed in chunks", `${ANSWER}${CHUNKED}\r\n1\na\n0\n\n`],
    ["a folded trailer", `${ANSWER}${CHUNKED}\r\n0\r\nA: b\r\n c\r\n\r\n`],
    ["an invalid reason", "HTTP/1.1 200 O\0K\r\n\r\n"],
    ["an empty line before it", `\r\n${ANSWER}\r\n`],
  ])("with %s is refused", (_, text) => {
    expect(whole("answer", text).isRefused).toBe(true);
  });

  test("that ends early is refused, and one without an announced end may end", () => {
    const ended = (text: string) => {
      const queue = new ByteQueue();
      const parser = new ResponseParser(queue, "GET");
      queue.push(Buffer.from(text));
      while (parser.next() !== null);
      return () => parser.finish().kind;
    };
    expect(ended(`${ANSWER}\r\nabc`)()).toBe("end");
    for (const text of [
      "",
      "HTTP/1.1 2",
      ANSWER,
      `${ANSWER}Content-Length: 3\r\n\r\nab`,
      `${ANSWER}${CHUNKED}\r\n0\r\n`,
    ]) {
      expect(ended(text)).toThrow(BadMessage);
    }
  });
});

test("a value with many blanks inside takes linear time", () => {
  const text = (blanks: number) => `${REQUEST}X: a${" ".repeat(blanks)}b\r\n\r\n`;
  const since = performance.now();
  for (let run = 0; run < 100; run++) expect(kindsOf("requests", text(60_000))).toEqual(["head", "end"]);
  // In quadratic time one of them takes seconds.
  expect(performance.now() - since).toBeLessThan(2000);
});

describe("a serialized message", () => {
  test("is parsed as the same message", () => {
    const field = fc.tuple(fc.stringMatching(/^[a-z][a-z-]{0,8}$/), fc.stringMatching(/^[!-~]([ -~]{0,8}[!-~])?$/));
    const headers = fc.array(field.filter(([name]) => !["host", "content-length", "transfer-encoding"].includes(name)));
    fc.assert(
      fc.property(headers, fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 })), (others, chunks) => {
        const all: [string, string][] = [["host", "a"], ["transfer-encoding", "chunked"], ...others];
        const bytes = Buffer.concat([serializeHead("PUT /x HTTP/1.1", all), ...chunks.map(serializeChunk), LAST_CHUNK]);
        const { parts } = partsOf("requests", [bytes]);
        expect(parts[0]?.about).toMatchObject({ method: "PUT", target: "/x", headers: all });
        const data = parts.filter(({ kind }) => kind === "data").map(({ raw }) => raw);
        expect(data).toEqual(chunks.map((each) => Buffer.from(each).toString("latin1")));
        expect(parts.at(-1)).toEqual({ kind: "end", raw: "\r\n", about: [] });
      }),
    );
  });

  test.each<[string, string, string]>([
    ["GET / HTTP/1.1\r\nX: y", "x", "y"],
    ["GET / HTTP/1.1", "x\r\ny", "z"],
    ["GET / HTTP/1.1", "x", "y\r\nz: a"],
    // Their low byte is a line feed.
    ["GET / HTTP/1.1", "x", "\u010a"],
    ["GET /\u010a HTTP/1.1", "x", "y"],
  ])("cannot contain another line: %j, %j: %j", (start, name, value) => {
    expect(() => serializeHead(start, [[name, value]])).toThrow(/invalid/);
  });
});
