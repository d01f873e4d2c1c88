/** Responses of servers, whole, odd and hostile, however their bytes are split. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ByteReader } from "../../../../daemon/wire/byte-reader.ts";
import { BadMessage } from "../../../../daemon/wire/http1/bad-message.ts";
import { ResponseParser, readBody, readHead } from "../../../../daemon/wire/http1/responses.ts";

const OK = "HTTP/1.1 200 OK\r\n";

/** The bytes in pieces of this size. */
async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

async function read(text: string | Uint8Array, { size = 1 << 20, method = "GET" } = {}) {
  const bytes = typeof text === "string" ? Buffer.from(text, "latin1") : text;
  const reader = new ByteReader(pieces(bytes, size));
  const parser = new ResponseParser(reader.queue, method);
  const { status, headers, framing } = await readHead(reader, parser);
  const parts: Uint8Array[] = [];
  for await (const part of readBody(reader, parser)) parts.push(part);
  return { head: { status, headers }, framing: framing.kind, body: Buffer.concat(parts).toString("latin1") };
}

test.each([1, 2, 3, 7, 1000])("a response in pieces of %i bytes is the same response", async (size) => {
  const text = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}X-A:  b \r\nX-a: c\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x="y"\r\n!\r\n0\r\nT: 1\r\n\r\n`;
  expect(await read(text, { size })).toEqual({
    head: {
      status: 200,
      headers: [
        ["x-a", "b"],
        ["x-a", "c"],
        ["transfer-encoding", "chunked"],
      ],
    },
    framing: "chunked",
    body: "hello!",
  });
});

test.each([
  ["a length", `${OK}Content-Length: 3\r\n\r\nabcdef`, "length", "abc"],
  ["the same length twice", `${OK}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`, "length", "abc"],
  ["no length", `${OK}\r\nabc`, "to_end", "abc"],
  ["bare line feeds", "HTTP/1.0 200\nA: b\n\nabc", "to_end", "abc"],
  ["no content", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc", "none", ""],
  ["nothing new", "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", "none", ""],
])("a body by %s", async (_, text, framing, body) => {
  expect(await read(text)).toMatchObject({ framing, body });
  expect((await read(text, { size: 1 })).body).toBe(body);
});

test("chunks that arrive together are forwarded together, and none waits for the next", async () => {
  const chunks = `${"1\r\na\r\n".repeat(1000)}`;
  const more = Promise.withResolvers<void>();
  async function* server(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(`${OK}Transfer-Encoding: chunked\r\n\r\n`);
    yield Buffer.from(chunks);
    yield Buffer.from("3\r\nbcd\r\n2\r\ne");
    await more.promise;
    yield Buffer.from("f\r\n0\r\n\r\n");
  }
  const reader = new ByteReader(server());
  const parser = new ResponseParser(reader.queue, "GET");
  await readHead(reader, parser);
  const body = readBody(reader, parser);
  const parts: string[] = [];
  while (parts.join("").length < 1004) parts.push(Buffer.from((await body.next()).value ?? []).toString());
  expect([parts.join(""), parts.length < 10]).toEqual([`${"a".repeat(1000)}bcde`, true]);
  more.resolve();
  for await (const part of body) parts.push(Buffer.from(part).toString());
  expect(parts.join("")).toBe(`${"a".repeat(1000)}bcdef`);
});

test("the response to HEAD has no body", async () => {
  expect(await read(`${OK}Content-Length: 3\r\n\r\n`, { method: "HEAD" })).toMatchObject({ framing: "none", body: "" });
});

describe("refused", () => {
  test.each([
    ["nothing", ""],
    ["half a head", `${OK}A: b\r\n`],
    ["another protocol", "SSH-2.0-x\r\n\r\n"],
    ["HTTP/2", "HTTP/2 200\r\n\r\n"],
    ["a status of two digits", "HTTP/1.1 99 x\r\n\r\n"],
    ["a status beyond all", "HTTP/1.1 600 x\r\n\r\n"],
    ["a folded header", `${OK}A: b\r\n c\r\n\r\n`],
    ["a header without a colon", `${OK}A b\r\n\r\n`],
    ["a space before the colon", `${OK}A : b\r\n\r\n`],
    ["a name of nothing", `${OK}: b\r\n\r\n`],
    ["a carriage return inside", `${OK}A: b\rC: d\r\n\r\n`],
    ["NUL", `${OK}A: \0\r\n\r\n`],
    ["two lengths", `${OK}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`],
    ["a length with a sign", `${OK}Content-Length: +3\r\n\r\nabc`],
    ["a length in hex", `${OK}Content-Length: 0x3\r\n\r\nabc`],
    ["a length beyond all", `${OK}Content-Length: ${"9".repeat(16)}\r\n\r\nabc`],
    ["a length and a coding", `${OK}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["another coding", `${OK}Transfer-Encoding: gzip\r\n\r\nabc`],
    ["two codings", `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ["a coding twice", `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["a body that ends early", `${OK}Content-Length: 3\r\n\r\nab`],
    ["a chunk that ends early", `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nab`],
    ["no last chunk", `${OK}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n`],
    ["a chunk of a negative size", `${OK}Transfer-Encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n`],
    ["a chunk longer than its size", `${OK}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n`],
    ["an endless line", `${OK}A: ${"a".repeat(70_000)}\r\n\r\n`],
    ["an endless head", `${OK}${`A: ${"a".repeat(1000)}\r\n`.repeat(70)}\r\n`],
    ["too many headers", `${OK}${"A: b\r\n".repeat(257)}\r\n`],
    ["too many trailers", `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n${"A: b\r\n".repeat(300)}\r\n`],
    ["nothing but wait", "HTTP/1.1 100 Continue\r\n\r\n".repeat(100)],
  ])("%s", async (_, text) => {
    await expect(read(text)).rejects.toThrow(BadMessage);
    await expect(read(text, { size: 3 })).rejects.toThrow(BadMessage);
  });

  test("nonsense of every kind ends in a response or in BadMessage", async () => {
    const part = fc.constantFrom(
      "HTTP/1.1 200 OK",
      "Content-Length: 3",
      "Transfer-Encoding: chunked",
      "\r\n",
      "3",
      "0",
      "A",
    );
    const text = fc.array(fc.oneof(part, fc.string({ unit: "binary-ascii", maxLength: 8 })), { maxLength: 20 });
    const check = async (words: string[], size: number) => {
      try {
        await read(words.join(""), { size });
      } catch (error) {
        expect(error).toBeInstanceOf(BadMessage);
      }
    };
    await fc.assert(fc.asyncProperty(text, fc.integer({ min: 1, max: 9 }), check), { numRuns: 3000 });
  });
});
